// SQL of requests for an API key. An open one is pending or approved, and has not expired.
import type { Selectable } from 'kysely'
import { countRows } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

export type RequestRow = Selectable<Tables['key_requests']>

const OPEN = ['pending', 'approved'] as const

export async function insertRequest(db: Tx, row: RequestRow): Promise<void> {
  await db.insertInto('key_requests').values(row).execute()
}

export const findRequest = (db: Db, id: string): Promise<RequestRow | undefined> =>
  db.selectFrom('key_requests').selectAll().where('id', '=', id).executeTakeFirst()

/** Reads and locks the row; an update without change locks it on both engines. */
export const lockRequest = (db: Tx, workspaceId: string, id: string): Promise<RequestRow | undefined> =>
  db
    .updateTable('key_requests')
    .set((row) => ({ state: row.ref('state') }))
    .where('workspace_id', '=', workspaceId)
    .where('id', '=', id)
    .returningAll()
    .executeTakeFirst()

export async function updateRequest(db: Tx, id: string, change: Partial<RequestRow>): Promise<void> {
  await db.updateTable('key_requests').set(change).where('id', '=', id).execute()
}

/** The open request of a user; a user has at most one in a workspace. */
export const findOpenRequest = (
  db: Db,
  workspaceId: string,
  userId: string,
  now: number,
): Promise<RequestRow | undefined> =>
  db
    .selectFrom('key_requests')
    .selectAll()
    .where('user_id', '=', userId)
    .where('workspace_id', '=', workspaceId)
    .where('state', 'in', OPEN)
    .where('expires_at', '>', now)
    .executeTakeFirst()

export const countRequestsSince = (
  db: Db,
  workspaceId: string,
  userId: string,
  since: number,
): Promise<number> =>
  countRows(
    db
      .selectFrom('key_requests')
      .where('user_id', '=', userId)
      .where('workspace_id', '=', workspaceId)
      .where('created_at', '>', since),
  )

const selectListed = (db: Db, workspaceId: string, limit: number) =>
  db
    .selectFrom('key_requests as request')
    .innerJoin('users', 'users.id', 'request.user_id')
    .leftJoin('users as decider', 'decider.id', 'request.decided_by')
    .selectAll('request')
    .select(['users.name', 'users.email', 'decider.name as deciderName'])
    .where('request.workspace_id', '=', workspaceId)
    .orderBy('request.created_at', 'desc')
    .limit(limit)

export const listRequestsBy = (db: Db, workspaceId: string, userId: string, limit: number) =>
  selectListed(db, workspaceId, limit).where('request.user_id', '=', userId).execute()

export const listPendingRequests = (db: Db, workspaceId: string, now: number, limit: number) =>
  selectListed(db, workspaceId, limit)
    .where('request.state', '=', 'pending')
    .where('request.expires_at', '>', now)
    .execute()

/** Ends the open requests of a user, in one workspace or in all, and returns them. */
export function endRequests(
  db: Tx,
  { userId, workspaceId }: { userId: string; workspaceId?: string | undefined },
) {
  const query = db
    .updateTable('key_requests')
    .set({ state: 'withdrawn' })
    .where('user_id', '=', userId)
    .where('state', 'in', OPEN)
    .returning(['id', 'workspace_id', 'label'])
  return (workspaceId === undefined ? query : query.where('workspace_id', '=', workspaceId)).execute()
}
