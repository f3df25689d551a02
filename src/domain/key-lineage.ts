// The lineage of API keys: which keys replace a key by rotation.
import { stateOf } from '../store/key-state.ts'
import { type KeyRow, listSuccessors } from '../store/keys.ts'
import type { Db } from '../store/store.ts'
import type { Context } from './context.ts'

const isActive = (row: KeyRow): boolean => stateOf(row) === 'active'

/**
 * The keys that replace one of these, directly or indirectly, newest first. For active keys only: these were
 * rotated in the last 7 days, so their lineage is short.
 */
export async function listDescendants(db: Db, workspaceId: string, ids: string[]): Promise<KeyRow[]> {
  const found: KeyRow[] = []
  for (let next = ids; next.length > 0; ) {
    const rows = await listSuccessors(db, workspaceId, next)
    found.push(...rows)
    next = rows.map(({ id }) => id)
  }
  return found.sort((a, b) => (a.id < b.id ? 1 : -1))
}

/**
 * The latest key that replaces each of these, by the id of the replaced key. For an active key this is the
 * active one, if there is one: only without it can the key be rotated again.
 */
export async function findSuccessors({ store: { db }, workspaceId }: Context, rows: KeyRow[]) {
  const ids = rows.map(({ id }) => id)
  const direct = ids.length > 0 ? await listSuccessors(db, workspaceId, ids) : []
  // Oldest first, so that the newest is kept.
  const latest = new Map(direct.reverse().map((row) => [row.predecessor_id, row]))
  const hasInactive = ({ id }: KeyRow) => latest.has(id) && !isActive(latest.get(id) as KeyRow)
  const open = rows.filter((row) => isActive(row) && hasInactive(row))
  const descendants = await listDescendants(
    db,
    workspaceId,
    open.map(({ id }) => id),
  )
  const byId = new Map(descendants.map((row) => [row.id, row]))
  // Oldest first, then active ones, so that these are kept.
  const ordered = descendants.toReversed().sort((a, b) => Number(isActive(a)) - Number(isActive(b)))
  for (const row of ordered)
    for (let id = row.predecessor_id; id; id = byId.get(id)?.predecessor_id ?? null) latest.set(id, row)
  return latest
}
