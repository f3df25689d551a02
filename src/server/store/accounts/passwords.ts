// Password hashes: rows of `identities` with the provider `credential`.
import type { Db, Tx } from '../engine/store.ts'

export const PASSWORD = 'credential'

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

/** One query for known and unknown addresses, so that timing does not reveal which addresses exist. */
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

/** Reads the password and locks the row; an update without change does so on both engines. */
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
