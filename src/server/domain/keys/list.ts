// The list of API keys in the dashboard. Active keys of one lineage are listed together: below the newest
// those that it replaces.
import type { KeyState } from '../../../lib/credentials/key-state.ts'
import { listUserNames } from '../../store/accounts/users.ts'
import { type KeyRow, listActiveByLineage, listKeyLabels, listKeys } from '../../store/keys/rows.ts'
import { rowState } from '../../store/keys/state.ts'
import type { Context } from '../context.ts'
import { filteredPage } from '../pagination.ts'
import { describeLifecycle, type KeyPage } from './lifecycle.ts'
import { actingUserId } from './rights.ts'

interface KeyFilter {
  state?: KeyState | undefined
  search?: string | undefined
  /** Only the personal keys of the user who reads. */
  owner?: 'me' | undefined
}

/** A page of the keys that match, with who created them. */
export async function listForMembers(
  ctx: Context,
  { state, search = '', owner, limit = 50, cursor }: KeyPage & KeyFilter,
) {
  const { db } = ctx.store
  const hasText = createMatcher(search.trim())
  const ownId = actingUserId(ctx.actor)
  const userId = owner === 'me' ? (ownId ?? '') : undefined
  const matches = (row: KeyRow) => (state === undefined || rowState(row) === state) && hasText(row)
  const active = new ActiveLineages(ctx)
  const { page, next } = await filteredPage({
    limit,
    cursor,
    read: (slice) =>
      listKeys(db, ctx.workspaceId, {
        ...slice,
        userId,
        withRevoked: state === undefined || state === 'revoked',
      }),
    filter: async (rows) => {
      const matching = rows.filter(matches)
      await active.load(matching)
      return matching.filter((row) => rowState(row) !== 'active' || !active.newerThan(row).some(matches))
    },
  })
  const items = page.map((row) => ({
    row,
    predecessors: rowState(row) === 'active' ? active.olderThan(row).filter(matches) : [],
  }))
  const listed = items.flatMap(({ row, predecessors }) => [row, ...predecessors])
  const findCreator = await loadCreators(ctx, listed)
  const userNames = await readUserNames(ctx, listed)
  const describe = (row: KeyRow) => {
    const [successor] = active.newerThan(row)
    return {
      ...describeLifecycle(row),
      createdBy: findCreator(row),
      user:
        row.user_id === null
          ? null
          : { name: userNames.get(row.user_id) ?? row.user_id, isYou: row.user_id === ownId },
      agent:
        row.agent_access === null
          ? null
          : { host: row.agent_host ?? '', managesKeys: row.agent_access === 'manage' },
      successor: successor ? { id: successor.id, lastFour: successor.last_four } : null,
    }
  }
  const keys = items.map(({ row, predecessors }) => ({
    ...describe(row),
    predecessors: predecessors.map(describe),
  }))
  return { keys, next }
}

/**
 * Matches part of the label, the last four characters, or the beginning of the id. Empty text matches all.
 */
function createMatcher(text: string): (row: KeyRow) => boolean {
  if (text === '') return () => true
  const lower = text.toLowerCase()
  return ({ id, label, last_four }) =>
    label.toLowerCase().includes(lower) ||
    last_four === text ||
    (text.startsWith('tok_') && id.startsWith(text))
}

/** The active keys of lineages, newest first. */
class ActiveLineages {
  readonly #ctx: Context
  readonly #keys = new Map<string, KeyRow[]>()

  constructor(ctx: Context) {
    this.#ctx = ctx
  }

  async load(rows: KeyRow[]): Promise<void> {
    const ids = new Set(rows.flatMap(({ lineage_id }) => lineage_id ?? []))
    const unknown = [...ids].filter((id) => !this.#keys.has(id))
    if (unknown.length === 0) return
    for (const id of unknown) this.#keys.set(id, [])
    const { store, workspaceId } = this.#ctx
    for (const key of await listActiveByLineage(store.db, workspaceId, unknown))
      this.#keys.get(key.lineage_id as string)?.push(key)
  }

  newerThan({ lineage_id, generation }: KeyRow): KeyRow[] {
    return this.#lineage(lineage_id).filter((key) => key.generation > generation)
  }

  olderThan({ lineage_id, generation }: KeyRow): KeyRow[] {
    return this.#lineage(lineage_id).filter((key) => key.generation < generation)
  }

  #lineage(lineageId: string | null): KeyRow[] {
    return this.#keys.get(lineageId ?? '') ?? []
  }
}

async function readUserNames({ store }: Context, rows: KeyRow[]): Promise<Map<string, string>> {
  const ids = new Set(rows.flatMap(({ user_id }) => user_id ?? []))
  return new Map((await listUserNames(store.db, [...ids])).map(({ id, name }) => [id, name]))
}

/** Keys that were created by a key record its id; the list shows its label instead. */
async function loadCreators({ store, workspaceId }: Context, rows: KeyRow[]) {
  const keyIds = rows.flatMap((row) => (row.created_by_kind === 'key' ? row.created_by : []))
  const ids = [...new Set(keyIds)]
  const found = ids.length > 0 ? await listKeyLabels(store.db, workspaceId, ids) : []
  const labels = new Map(found.map(({ id, label }) => [id, label]))
  return ({ created_by_kind: kind, created_by: name }: KeyRow) => ({
    kind,
    name: (kind === 'key' && labels.get(name)) || name,
  })
}
