// Sessions of users in browsers.
import type { Selectable } from 'kysely'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

type SessionRow = Selectable<Tables['sessions']>

export async function insertSession(db: Tx, row: SessionRow): Promise<void> {
  await db.insertInto('sessions').values(row).execute()
}

/** `token` is the hash of the token in the cookie. */
export const findSession = (db: Db, token: string): Promise<SessionRow | undefined> =>
  db.selectFrom('sessions').selectAll().where('token', '=', token).executeTakeFirst()

/** Returns false if there is no such session. */
export async function extendSession(
  db: Tx,
  { id, expiresAt }: { id: string; expiresAt: number },
): Promise<boolean> {
  const { numUpdatedRows } = await db
    .updateTable('sessions')
    .set({ expires_at: expiresAt })
    .where('id', '=', id)
    .executeTakeFirst()
  return numUpdatedRows === 1n
}

export const listSessions = (db: Db, userId: string, now: number): Promise<SessionRow[]> =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .execute()

export type SessionTimes = Pick<SessionRow, 'created_at' | 'expires_at'>

/** Locks the session with an update without change. It may have expired. */
export const lockSession = (db: Tx, userId: string, id: string): Promise<SessionTimes | undefined> =>
  db
    .updateTable('sessions')
    .set((session) => ({ user_id: session.ref('user_id') }))
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning(['created_at', 'expires_at'])
    .executeTakeFirst()

/** Returns the deleted session; undefined if the user has no such session. */
export const deleteSession = (
  db: Tx,
  userId: string,
  id: string,
): Promise<Pick<SessionRow, 'ip_address' | 'id_token'> | undefined> =>
  db
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning(['ip_address', 'id_token'])
    .executeTakeFirst()

/** Deletes all sessions of a user, optionally except one. */
export async function deleteSessions(db: Tx, userId: string, except?: string): Promise<void> {
  let query = db.deleteFrom('sessions').where('user_id', '=', userId)
  if (except !== undefined) query = query.where('id', '!=', except)
  await query.execute()
}

/** Deletes the sessions of a user beyond the newest `max`. */
export async function dropSessionsBeyond(db: Tx, userId: string, max: number): Promise<void> {
  await db
    .deleteFrom('sessions')
    .where('id', 'in', (sessions) =>
      sessions
        .selectFrom('sessions')
        .select('id')
        .where('user_id', '=', userId)
        .orderBy('created_at', 'desc')
        // SQLite allows no offset without a limit. There are few: each sign-in adds one session.
        .limit(1_000)
        .offset(max),
    )
    .execute()
}
