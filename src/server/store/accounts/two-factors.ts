// Two-factor authentication: a TOTP secret and recovery codes for each user who has set it up, and the codes
// that were used. A first valid code enables it, in the row of the user. Callers lock that row first.
import { type Selectable, sql } from 'kysely'
import type { Db, Tx } from '../engine/store.ts'
import type { Tables } from '../engine/tables.ts'
import { revokedColumns } from '../keys/rows.ts'
import { inState } from '../keys/state.ts'
import { PASSWORD } from './passwords.ts'

export type TwoFactorRow = Selectable<Tables['two_factors']>

export const findTwoFactor = (db: Db, userId: string): Promise<TwoFactorRow | undefined> =>
  db.selectFrom('two_factors').selectAll().where('user_id', '=', userId).executeTakeFirst()

/** Replaces an earlier setup, which callers have checked to be unconfirmed. */
export async function setTwoFactor(db: Tx, row: TwoFactorRow): Promise<void> {
  await db
    .insertInto('two_factors')
    .values(row)
    .onConflict((conflict) => conflict.column('user_id').doUpdateSet(row))
    .execute()
}

export async function updateTwoFactor(
  db: Tx,
  userId: string,
  values: Partial<Pick<TwoFactorRow, 'recovery_codes' | 'failed_codes' | 'locked_until'>>,
): Promise<void> {
  await db.updateTable('two_factors').set(values).where('user_id', '=', userId).execute()
}

export async function enableTwoFactor(db: Tx, userId: string): Promise<void> {
  await db.updateTable('users').set({ two_factor_enabled: 1 }).where('id', '=', userId).execute()
}

/** Disables two-factor authentication. Returns false if it was not set up. */
export async function deleteTwoFactor(db: Tx, userId: string): Promise<boolean> {
  await db.updateTable('users').set({ two_factor_enabled: 0 }).where('id', '=', userId).execute()
  const query = db.deleteFrom('two_factors').where('user_id', '=', userId)
  return (await query.executeTakeFirst()).numDeletedRows === 1n
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
 * Users who can sign in with a password alone. Those without a password are exempt: their identity provider
 * has its own two-factor authentication.
 */
const selectWithoutTwoFactor = (db: Db) =>
  db
    .selectFrom('users')
    .innerJoin('identities', (join) =>
      // The account of a password is the user.
      join.onRef('identities.account_id', '=', 'users.id').on('identities.provider_id', '=', PASSWORD),
    )
    .select('users.id')
    .where('users.two_factor_enabled', '=', 0)

export const lacksTwoFactor = async (db: Db, userId: string): Promise<boolean> =>
  (await selectWithoutTwoFactor(db).where('users.id', '=', userId).executeTakeFirst()) !== undefined

/**
 * Revokes the active personal keys of users without two-factor authentication in workspaces that require it,
 * and returns them: the keys of one user, or those in one workspace.
 */
export function revokeKeysWithoutTwoFactor(
  db: Tx,
  scope: { userId: string } | { workspaceId: string },
  at: number,
) {
  const query = db
    .updateTable('api_keys')
    .set({ revoked_at: at })
    .where(inState(db, 'active'))
    // Correlated, so that only the users and workspaces of these keys are read.
    .where(
      'user_id',
      'in',
      selectWithoutTwoFactor(db).where('users.id', '=', sql.ref<string>('api_keys.user_id')),
    )
    .where('workspace_id', 'in', (from) =>
      from
        .selectFrom('workspaces')
        .select('workspaces.id')
        .whereRef('workspaces.id', '=', 'api_keys.workspace_id')
        .where('two_factor_required_at', 'is not', null),
    )
    .returning(revokedColumns)
  return (
    'userId' in scope
      ? query.where('user_id', '=', scope.userId)
      : query.where('workspace_id', '=', scope.workspaceId)
  ).execute()
}
