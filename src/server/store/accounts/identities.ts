// Links between users and accounts at identity providers, by issuer and subject.
import { insertUnlessExists } from '../engine/rows.ts'
import type { Db, Tx } from '../engine/store.ts'
import type { UserRow } from './users.ts'

/** Includes the issuer, because subjects are unique only per issuer. */
const providerId = (issuer: string) => `oidc:${issuer}`

export const findUserByIdentity = (db: Db, issuer: string, subject: string): Promise<UserRow | undefined> =>
  db
    .selectFrom('identities')
    .innerJoin('users', 'users.id', 'identities.user_id')
    .selectAll('users')
    .where('identities.provider_id', '=', providerId(issuer))
    .where('identities.account_id', '=', subject)
    .executeTakeFirst()

/** Whether the user is linked to any subject of the issuer. */
export async function hasIdentity(db: Db, issuer: string, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('identities')
    .select('id')
    .where('user_id', '=', userId)
    .where('provider_id', '=', providerId(issuer))
    .executeTakeFirst()
  return row !== undefined
}

/** Returns false if the subject is linked already. */
export const insertIdentity = (
  db: Tx,
  identity: { id: string; userId: string; issuer: string; subject: string; at: number },
): Promise<boolean> =>
  insertUnlessExists(
    db,
    'identities',
    {
      id: identity.id,
      user_id: identity.userId,
      provider_id: providerId(identity.issuer),
      account_id: identity.subject,
      created_at: identity.at,
      updated_at: identity.at,
    },
    ['provider_id', 'account_id'],
  )
