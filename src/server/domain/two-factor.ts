// Enforces two-factor authentication in workspaces that require it.
import { lacksTwoFactor } from '../store/accounts/two-factors.ts'
import type { Db } from '../store/engine/store.ts'
import type { PolicyColumns } from '../store/workspaces.ts'
import { Fault } from './fault.ts'

export const TWO_FACTOR_REQUIRED =
  'This workspace requires two-factor authentication. Set it up in the settings of your account first.'

/** Throws if the workspace requires two-factor authentication and the member has not set it up. */
export async function requireTwoFactor(
  db: Db,
  { two_factor_required_at }: Pick<PolicyColumns, 'two_factor_required_at'>,
  userId: string,
): Promise<void> {
  if (two_factor_required_at === null || !(await lacksTwoFactor(db, userId))) return
  throw new Fault('forbidden', { message: TWO_FACTOR_REQUIRED })
}
