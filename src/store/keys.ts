import type { Selectable } from 'kysely'
import { batches, executeBulk } from './bulk.ts'
import type { Db, Tx } from './store.ts'
import type { Tables } from './tables.ts'

export type KeyRow = Selectable<Tables['api_keys']>

export async function insertKey(db: Tx, row: KeyRow): Promise<void> {
  await db.insertInto('api_keys').values(row).execute()
}

export const findKeyByHash = (db: Db, hash: string): Promise<KeyRow | undefined> =>
  db.selectFrom('api_keys').selectAll().where('hash', '=', hash).executeTakeFirst()

/** Across workspaces, for the operator alone. */
export const findKeyById = (db: Db, id: string): Promise<KeyRow | undefined> =>
  db.selectFrom('api_keys').selectAll().where('id', '=', id).executeTakeFirst()

export interface Page {
  /** Begin after the row with this id, or whatever the list is sorted by. */
  after?: string | undefined
  limit: number
}

/** Newest first: ids sort by time of creation. */
export function listKeys(
  db: Db,
  workspaceId: string,
  { after, limit, state }: Page & { state?: 'active' | 'revoked' | undefined },
): Promise<KeyRow[]> {
  let query = db
    .selectFrom('api_keys')
    .selectAll()
    .where('workspace_id', '=', workspaceId)
    .orderBy('id', 'desc')
    .limit(limit)
  if (after !== undefined) query = query.where('id', '<', after)
  if (state !== undefined) query = query.where('revoked_at', state === 'active' ? 'is' : 'is not', null)
  return query.execute()
}

export const listKeyLabels = (db: Db, workspaceId: string, ids: readonly string[]) =>
  db
    .selectFrom('api_keys')
    .select(['id', 'label'])
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', ids)
    .execute()

/** Counts no further than `max`. */
export async function countActiveKeys(db: Db, workspaceId: string, max: number): Promise<number> {
  const active = db
    .selectFrom('api_keys')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where('revoked_at', 'is', null)
    .limit(max)
  const { count } = await db
    .selectFrom(active.as('active'))
    .select((row) => row.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

/** The hash of the key; undefined where no such key of the workspace is active. */
export async function revokeKey(
  db: Tx,
  workspaceId: string,
  id: string,
  at: number,
): Promise<string | undefined> {
  const row = await db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .returning('hash')
    .executeTakeFirst()
  return row?.hash
}

/**
 * Whether the key is active, and if so, it stays so until the transaction ends: a revocation of it waits, or has been
 * waited for. (Written to itself, which locks it on every engine.)
 */
export async function lockActiveKey(db: Tx, workspaceId: string, id: string): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('api_keys')
    .set({ revoked_at: null })
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .where('revoked_at', 'is', null)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

/** Late or repeated marks change nothing: the latest use stays. */
export async function updateLastUsed(db: Tx, marks: readonly (readonly [id: string, at: number])[]) {
  const update = `update api_keys set last_used_at = given.at from given
    where api_keys.id = given.id and (api_keys.last_used_at is null or api_keys.last_used_at < given.at)`
  for (const part of batches(db, marks)) await executeBulk(db, { id: 'text', at: 'bigint' }, part, update)
}
