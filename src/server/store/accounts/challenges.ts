// Sign-ins in progress: challenges for a two-factor code, and used states of single sign-on. Both expire, and
// the maintenance job deletes them.
import { sql } from 'kysely'
import { insertUnlessExists } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'

interface Challenge {
  userId: string
  failedCodes: number
}

/** `hash` is that of the token in the cookie. */
const challengeId = (hash: string) => `code_${hash}`

export async function insertChallenge(
  db: Tx,
  { hash, userId, expiresAt }: { hash: string; userId: string; expiresAt: number },
): Promise<void> {
  await db
    .insertInto('verifications')
    .values({ id: challengeId(hash), value: userId, expires_at: expiresAt })
    .execute()
}

export const findChallenge = (db: Db, hash: string, now: number): Promise<Challenge | undefined> =>
  db
    .selectFrom('verifications')
    .select(['value as userId', 'failed_codes as failedCodes'])
    .where('id', '=', challengeId(hash))
    .where('expires_at', '>', now)
    .executeTakeFirst()

export async function countFailedCode(db: Tx, hash: string): Promise<void> {
  await db
    .updateTable('verifications')
    .set((row) => ({ failed_codes: row('failed_codes', '+', 1) }))
    .where('id', '=', challengeId(hash))
    .execute()
}

export async function deleteChallenge(db: Tx, hash: string): Promise<void> {
  await db.deleteFrom('verifications').where('id', '=', challengeId(hash)).execute()
}

/** Deletes all challenges of a user. */
export async function deleteChallenges(db: Tx, userId: string): Promise<void> {
  await db
    .deleteFrom('verifications')
    // The index covers only the start of the value.
    .where(sql<string>`substr(value, 1, 64)`, '=', userId)
    .where('value', '=', userId)
    .execute()
}

/** Returns false if the state was used before. */
export const consumeSsoState = (
  db: Tx,
  { hash, expiresAt }: { hash: string; expiresAt: number },
): Promise<boolean> =>
  insertUnlessExists(db, 'verifications', { id: `sso_${hash}`, value: '', expires_at: expiresAt }, ['id'])
