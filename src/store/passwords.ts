// Passwords, hashed: rows of `identities` of one provider.
import type { Db, Tx } from './store.ts'

/** What better-auth calls an account of the provider "credential". */
const PASSWORD = 'credential'

export async function setPassword(
  db: Tx,
  { id, userId, password, at }: { id: string; userId: string; password: string; at: number },
): Promise<void> {
  await db
    .insertInto('identities')
    .values({
      id,
      user_id: userId,
      provider_id: PASSWORD,
      account_id: userId,
      password,
      created_at: at,
      updated_at: at,
    })
    .onConflict((conflict) =>
      conflict.columns(['provider_id', 'account_id']).doUpdateSet({ password, updated_at: at }),
    )
    .execute()
}

/** One query whether the address is known or not, so that the time it takes does not tell. */
export const findPasswordByEmail = (db: Db, email: string) =>
  db
    .selectFrom('users')
    .innerJoin('identities', (join) =>
      join.onRef('identities.account_id', '=', 'users.id').on('identities.provider_id', '=', PASSWORD),
    )
    .select(['users.id as userId', 'identities.password as passwordHash'])
    .where('users.email', '=', email)
    .executeTakeFirst()

export async function findPassword(db: Db, userId: string): Promise<string | undefined> {
  const row = await db
    .selectFrom('identities')
    .select('password')
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .executeTakeFirst()
  return row?.password ?? undefined
}

/** The same, and it stays what it is until the transaction ends. (Written to itself.) */
export async function lockPassword(db: Tx, userId: string): Promise<string | undefined> {
  const row = await db
    .updateTable('identities')
    .set((identity) => ({ password: identity.ref('password') }))
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .returning('password')
    .executeTakeFirst()
  return row?.password ?? undefined
}

export async function hasPassword(db: Db, userId: string): Promise<boolean> {
  const row = await db
    .selectFrom('identities')
    .select('id')
    .where('provider_id', '=', PASSWORD)
    .where('account_id', '=', userId)
    .executeTakeFirst()
  return row !== undefined
}
