// Enforces two-factor authentication in workspaces that require it.
import { hasPassword } from '../store/accounts/passwords.ts'
import { findUser, type UserRow } from '../store/accounts/users.ts'
import type { Db } from '../store/engine/store.ts'
import type { PolicyColumns } from '../store/workspaces.ts'
import { Fault } from './fault.ts'

/** Users who sign in only with an identity provider are exempt: it has its own two-factor authentication. */
export const lacksTwoFactor = (user: Pick<UserRow, 'two_factor_enabled'>, withPassword: boolean): boolean =>
  withPassword && user.two_factor_enabled !== 1

export async function usesTwoFactor(db: Db, userId: string): Promise<boolean> {
  const user = await findUser(db, userId)
  return user !== undefined && !lacksTwoFactor(user, await hasPassword(db, userId))
}

export const TWO_FACTOR_REQUIRED =
  'This workspace requires two-factor authentication. Set it up in the settings of your account first.'

/** Throws if the workspace requires two-factor authentication and the member has not set it up. */
export async function requireTwoFactor(
  db: Db,
  { two_factor_required_at }: Pick<PolicyColumns, 'two_factor_required_at'>,
  userId: string,
): Promise<void> {
  if (two_factor_required_at === null || (await usesTwoFactor(db, userId))) return
  throw new Fault('forbidden', { message: TWO_FACTOR_REQUIRED })
}
