// The list of API keys in the dashboard. Keys of one lineage are listed together: below a key those that it
// has replaced.
import type { KeyState } from '../credentials/key-state.ts'
import { stateOf } from '../store/key-state.ts'
import { type KeyRow, listKeyGroups, listKeyLabels, listKeysById } from '../store/keys.ts'
import type { Context } from './context.ts'
import { findSuccessors } from './key-lineage.ts'
import { describeLifecycle, type KeyPage } from './keys.ts'
import { pageOf } from './pagination.ts'

interface KeyFilter {
  state?: KeyState | undefined
  search?: string | undefined
}

/** A page of the keys that match, with who created them. */
export async function listForMembers(
  ctx: Context,
  { state, search = '', limit = 50, cursor }: KeyPage & KeyFilter,
) {
  const { store, workspaceId } = ctx
  const filter = { state, search: search.trim() }
  const rows = await listKeyGroups(store.db, workspaceId, { ...filter, after: cursor, limit: limit + 1 })
  const { page, next } = pageOf(rows, limit)
  const older = await predecessorsOf(ctx, page, filter)
  const describe = await describer(ctx, [...page, ...older.values()])
  const keys = page.map((row) => ({
    ...describe(row),
    predecessors: [...lineage(row, older)].map(describe),
  }))
  return { keys, next }
}

/** The keys that `listKeyGroups` has left out because their successors are listed, by id. */
async function predecessorsOf(
  { store, workspaceId }: Context,
  listed: KeyRow[],
  filter: KeyFilter & { search: string },
): Promise<Map<string, KeyRow>> {
  const found = new Map<string, KeyRow>()
  for (let rows = listed; rows.length > 0; ) {
    const ids = rows.flatMap((row) => hiddenBy(row) ?? [])
    rows = ids.length > 0 ? await listKeysById(store.db, workspaceId, { ...filter, ids }) : []
    for (const row of rows) found.set(row.id, row)
  }
  return found
}

/** The key that is not an item of its own because this one is listed: inactive successors hide none. */
const hiddenBy = (row: KeyRow): string | null => (stateOf(row) === 'active' ? row.predecessor_id : null)

function* lineage(row: KeyRow, older: ReadonlyMap<string, KeyRow>): Generator<KeyRow> {
  let id = hiddenBy(row)
  for (let next = id && older.get(id); next; next = id && older.get(id)) {
    yield next
    id = hiddenBy(next)
  }
}

async function describer(ctx: Context, rows: KeyRow[]) {
  const successors = await findSuccessors(ctx, rows)
  const creatorOf = await creatorNames(ctx, rows)
  return (row: KeyRow) => {
    const successor = successors.get(row.id)
    return {
      ...describeLifecycle(row),
      createdBy: creatorOf(row),
      successor: successor
        ? { id: successor.id, lastFour: successor.last_four, state: stateOf(successor) }
        : null,
    }
  }
}

const CREATED_BY_KEY = /^key (tok_[0-9a-z]+)$/

/** Keys that were created by a key record its id; the list shows its label instead. */
async function creatorNames({ store, workspaceId }: Context, rows: KeyRow[]) {
  const keyIdOf = ({ created_by }: KeyRow) => CREATED_BY_KEY.exec(created_by ?? '')?.[1]
  const ids = [...new Set(rows.flatMap((row) => keyIdOf(row) ?? []))]
  const found = ids.length > 0 ? await listKeyLabels(store.db, workspaceId, ids) : []
  const labels = new Map(found.map(({ id, label }) => [id, label]))
  return (row: KeyRow): string | null => {
    const label = labels.get(keyIdOf(row) ?? '')
    return label ? `API key “${label}”` : row.created_by
  }
}
