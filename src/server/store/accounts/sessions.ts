// Sessions, used two-factor codes and used states of single sign-on.
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'

type SessionRow = Selectable<Tables['sessions']>

export const listSessions = (db: Db, userId: string, now: number): Promise<SessionRow[]> =>
  db
    .selectFrom('sessions')
    .selectAll()
    .where('user_id', '=', userId)
    .where('expires_at', '>', now)
    .orderBy('created_at', 'desc')
    .execute()

export type SessionTimes = Pick<SessionRow, 'created_at' | 'expires_at'>

/** Locks the session with an update without change. Expired ones stay in the table for a while. */
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
): Promise<Pick<SessionRow, 'ip_address'> | undefined> =>
  db
    .deleteFrom('sessions')
    .where('user_id', '=', userId)
    .where('id', '=', id)
    .returning('ip_address')
    .executeTakeFirst()

/** Deletes all sessions of a user, optionally except one. */
export async function deleteSessions(db: Tx, userId: string, except?: string): Promise<void> {
  let query = db.deleteFrom('sessions').where('user_id', '=', userId)
  if (except !== undefined) query = query.where('id', '!=', except)
  await query.execute()
}

/** Deletes the sessions of a user beyond the newest `most`. */
export async function dropSessionsBeyond(db: Tx, userId: string, most: number): Promise<void> {
  const beyond = await db
    .selectFrom('sessions')
    .select('id')
    .where('user_id', '=', userId)
    .orderBy('created_at', 'desc')
    .limit(1_000)
    .offset(most)
    .execute()
  if (beyond.length > 0)
    await db
      .deleteFrom('sessions')
      .where(
        'id',
        'in',
        beyond.map(({ id }) => id),
      )
      .execute()
}

/** Deletes pending two-factor challenges; better-auth stores them with the user's id as value. */
export async function deleteChallenges(db: Tx, userId: string): Promise<void> {
  await db
    .deleteFrom('verifications')
    // The index has the start of the value only.
    .where(sql<string>`substr(value, 1, 64)`, '=', userId)
    .where('value', '=', userId)
    .execute()
}

/** Returns false if the user has used the code before. Deletes codes older than `deleteBefore`. */
export async function useCode(
  db: Tx,
  { userId, hash, at, deleteBefore }: { userId: string; hash: string; at: number; deleteBefore: number },
): Promise<boolean> {
  await db.deleteFrom('used_codes').where('user_id', '=', userId).where('at', '<', deleteBefore).execute()
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('used_codes')
    .values({ user_id: userId, hash, at })
    .onConflict((conflict) => conflict.columns(['user_id', 'hash']).doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}

/**
 * Returns false if the state was used before. It is stored beside the other values that expire, which the
 * maintenance job deletes.
 */
export async function useSsoState(
  db: Tx,
  { hash, at, expiresAt }: { hash: string; at: number; expiresAt: number },
): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await db
    .insertInto('verifications')
    .values({
      id: `sso_${hash}`,
      identifier: 'sso-state',
      value: '',
      created_at: at,
      updated_at: at,
      expires_at: expiresAt,
    })
    .onConflict((conflict) => conflict.column('id').doNothing())
    .executeTakeFirstOrThrow()
  return numInsertedOrUpdatedRows === 1n
}
