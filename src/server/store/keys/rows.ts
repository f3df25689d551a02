// SQL of API keys.
import { type Selectable, sql } from 'kysely'
import type { KeyState } from '../../../lib/credentials/key-state.ts'
import { executeBulk, isOneOf, isPostgres, listParameter } from '../engine/bulk.ts'
import { nowIn } from '../engine/clock.ts'
import type { Page } from '../engine/page.ts'
import { type Placeholders, statement } from '../engine/statement.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { inState, rowState, stateColumns } from './state.ts'

/** `now` is the time of the read by the clock of the database. */
export type KeyRow = Selectable<Tables['api_keys']> & { now: number }

export async function insertKey(db: Tx, row: Omit<KeyRow, 'now'>): Promise<void> {
  await db.insertInto('api_keys').values(row).execute()
}

const selectKeys = (db: Db) => db.selectFrom('api_keys').selectAll().select(nowIn(db).as('now'))

export const findKeyByHash = async (db: Db, hash: string) => (await findKeysToVerify(db, [hash]))[0]

/** The columns that a verification needs, of the keys that exist. */
export const findKeysToVerify = (db: Db, hashes: readonly string[]) =>
  selectByHash(db, { hashes: listParameter(db, hashes) })

const selectByHash = statement((db: Db, { hashes }: Placeholders<{ hashes: string }>) =>
  db
    .selectFrom('api_keys')
    .innerJoin('workspaces', 'workspaces.id', 'api_keys.workspace_id')
    .select(['api_keys.hash', 'api_keys.id', 'api_keys.workspace_id', 'api_keys.user_id', 'agent_access'])
    .select('workspaces.archived_at')
    .select(stateColumns)
    .select(nowIn(db).as('now'))
    .where(isOneOf(db, 'api_keys.hash', hashes)),
)

/** Across workspaces, so only for the operator. */
export const findKeyById = (db: Db, id: string): Promise<KeyRow | undefined> =>
  selectKeys(db).where('id', '=', id).executeTakeFirst()

/** Sorts after every id. */
const AFTER_ALL = '~'

/** Across workspaces, newest first, each with its workspace. */
export const listAllKeys = (db: Db, { after = AFTER_ALL, limit }: Page) =>
  db
    .selectFrom('api_keys')
    .innerJoin('workspaces', 'workspaces.id', 'api_keys.workspace_id')
    .selectAll('api_keys')
    .select(['workspaces.slug', 'workspaces.archived_at', nowIn(db).as('now')])
    .where('api_keys.id', '<', after)
    .orderBy('api_keys.id', 'desc')
    .limit(limit)
    .execute()

/** Newest first, because ids sort by creation time. An index of active keys skips revoked ones. */
export function listKeys(
  db: Db,
  workspaceId: string,
  { after, limit, withRevoked = true, userId }: Page & { withRevoked?: boolean; userId?: string | undefined },
): Promise<KeyRow[]> {
  let query = selectKeys(db).where('workspace_id', '=', workspaceId).orderBy('id', 'desc').limit(limit)
  if (after !== undefined) query = query.where('id', '<', after)
  if (!withRevoked) query = query.where('revoked_at', 'is', null)
  if (userId !== undefined) query = query.where('user_id', '=', userId)
  return query.execute()
}

export const listKeyLabels = (db: Db, workspaceId: string, ids: readonly string[]) =>
  db
    .selectFrom('api_keys')
    .select(['id', 'label'])
    .where('workspace_id', '=', workspaceId)
    .where('id', 'in', ids)
    .execute()

/** The active keys of the lineages, newest first. A rotation limits how many a lineage has. */
export const listActiveByLineage = (
  db: Db,
  workspaceId: string,
  lineageIds: readonly string[],
): Promise<KeyRow[]> =>
  selectKeys(db)
    .where('workspace_id', '=', workspaceId)
    .where('lineage_id', 'in', lineageIds)
    .where(inState(db, 'active'))
    .orderBy('generation', 'desc')
    .execute()

/** Counts up to `max` keys of the workspace, or the personal keys of a user in it. */
export async function countActiveKeys(
  db: Db,
  workspaceId: string,
  max: number,
  userId?: string,
): Promise<number> {
  let active = db
    .selectFrom('api_keys')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .where(inState(db, 'active'))
    .limit(max)
  if (userId !== undefined) active = active.where('user_id', '=', userId)
  const { count } = await db
    .selectFrom(active.as('active'))
    .select((row) => row.fn.countAll().as('count'))
    .executeTakeFirstOrThrow()
  return Number(count)
}

export type RevokedKey = Pick<KeyRow, (typeof revokedColumns)[number]>

export const revokedColumns = ['id', 'workspace_id', 'label', 'hash', 'created_at', 'expires_at'] as const

/** Returns the key; undefined if the workspace, or the user in it, has no active key with this id. */
export const revokeKey = async (db: Tx, name: KeyName & { userId?: string | undefined }, at: number) =>
  (await updateRevoked(db, { ...name, userId: name.userId ?? null, at }))[0]

interface KeyName {
  workspaceId: string
  id: string
}

const updateRevoked = statement(
  (db: Tx, { workspaceId, id, userId, at }: Placeholders<KeyName & { userId: string | null; at: number }>) =>
    db
      .updateTable('api_keys')
      .set({ revoked_at: at })
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
      .where(inState(db, 'active'))
      .where(sql<boolean>`(cast(${userId} as text) is null or user_id = ${userId})`)
      .returning(revokedColumns),
)

/** Revokes the active personal keys of a user, in one workspace or in all, and returns them. */
export function revokePersonalKeys(
  db: Tx,
  { userId, workspaceId }: { userId: string; workspaceId?: string | undefined },
  at: number,
) {
  let query = db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where('user_id', '=', userId)
    .where(inState(db, 'active'))
    .returning(revokedColumns)
  if (workspaceId !== undefined) query = query.where('workspace_id', '=', workspaceId)
  return query.execute()
}

/** Across workspaces, so only for the operator. Revokes those that are active, and returns them. */
export const revokeKeys = (db: Tx, ids: readonly string[], at: number) =>
  db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where(isOneOf(db, 'id', listParameter(db, ids)))
    .where(inState(db, 'active'))
    .returning(revokedColumns)
    .execute()

type LockMode = 'shared' | 'exclusive'

/**
 * Locks the key until the transaction ends, and returns its state; undefined if there is no such key. To
 * change the key later, take an exclusive lock: two transactions with a shared one would deadlock.
 */
export async function lockKey(db: Tx, name: KeyName, mode: LockMode): Promise<KeyState | undefined> {
  const [row] = await selectLocked[mode](db, name)
  return row && rowState(row)
}

const selectLocked = { shared: selectState('shared'), exclusive: selectState('exclusive') }

function selectState(mode: LockMode) {
  return statement((db: Tx, { workspaceId, id }: Placeholders<KeyName>) => {
    const query = db
      .selectFrom('api_keys')
      .select(stateColumns)
      .select(nowIn(db).as('now'))
      .where('workspace_id', '=', workspaceId)
      .where('id', '=', id)
    // On SQLite a transaction is the only writer.
    return isPostgres(db) ? (mode === 'shared' ? query.forShare() : query.forUpdate()) : query
  })
}

/** Locks keys until the transaction ends. Read their state with another statement, which sees the latest. */
export async function lockKeysShared(db: Tx, ids: readonly string[]): Promise<void> {
  if (!isPostgres(db)) return
  await executeBulk(
    db,
    { id: 'text' },
    ids.map((id) => [id]),
    'select api_keys.id from api_keys where id in (select id from input) order by id for share',
  )
}

/** Locks all keys of a workspace exclusively. */
export async function lockWorkspaceKeys(db: Tx, workspaceId: string): Promise<void> {
  if (!isPostgres(db)) return
  await db
    .selectFrom('api_keys')
    .select('id')
    .where('workspace_id', '=', workspaceId)
    .orderBy('id')
    .forUpdate()
    .execute()
}

/** Locks the key exclusively and returns all columns. */
export function lockKeyRow(db: Tx, { workspaceId, id }: KeyName): Promise<KeyRow | undefined> {
  const query = selectKeys(db).where('workspace_id', '=', workspaceId).where('id', '=', id)
  return (isPostgres(db) ? query.forUpdate() : query).executeTakeFirst()
}

export async function updateKey(
  db: Tx,
  { workspaceId, id }: KeyName,
  changes: Partial<Pick<KeyRow, 'expires_at' | 'lineage_id' | 'lifetime'>>,
): Promise<void> {
  await db
    .updateTable('api_keys')
    .set(changes)
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .execute()
}

/** Keeps the latest use, so updates can be repeated and arrive in any order. */
export async function updateLastUsed(db: Tx, uses: readonly (readonly [id: string, at: number])[]) {
  const update = `update api_keys set last_used_at = input.at from input
    where api_keys.id = input.id and (api_keys.last_used_at is null or api_keys.last_used_at < input.at)`
  await executeBulk(db, { id: 'text', at: 'bigint' }, uses, update)
}
