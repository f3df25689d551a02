// The policy of a workspace, which its owners set: what members and API keys may do in it. It is read and
// enforced in the transaction that writes, from the locked row of the workspace, so that no request that
// started earlier can violate a new policy.
import type { Static } from 'typebox'
import type { Policy as PolicySchema } from '../contract/dashboard/settings.ts'
import { lockRole } from '../store/members.ts'
import { hasPassword } from '../store/passwords.ts'
import type { Db, Tx } from '../store/store.ts'
import { findUser, type UserRow } from '../store/users.ts'
import type { LockedWorkspace, PolicyColumns } from '../store/workspaces.ts'
import { DAY_MS, SECOND_MS } from '../time.ts'
import type { Actor, Context } from './context.ts'
import { Fault } from './fault.ts'

export type Policy = Static<typeof PolicySchema>

export const policyOf = (row: PolicyColumns): Policy => ({
  keyDaysMax: row.key_days_max,
  keysManageKeys: row.keys_read_only_at === null,
  keyCreators: row.key_creator_role ?? 'admin',
  twoFactorRequired: row.two_factor_required_at !== null,
})

/** Users in other time zones choose the end of a day, and the clocks of browsers differ. */
const EXPIRY_TOLERANCE_MS = DAY_MS

const latestExpiry = ({ keyDaysMax }: Policy, now: number): number =>
  keyDaysMax === null
    ? Number.POSITIVE_INFINITY
    : Math.floor((now + keyDaysMax * DAY_MS) / SECOND_MS) * SECOND_MS

/**
 * The expiry of a new key. Without one it gets the longest life that the policy allows: the public API has no
 * field for it.
 */
export function expiryByPolicy(
  workspace: LockedWorkspace,
  { actor, clock }: Context,
  expiresAt: number | null,
): number | null {
  const policy = policyOf(workspace)
  if (policy.keyDaysMax === null || isForced(actor)) return expiresAt
  const latest = latestExpiry(policy, clock())
  if (expiresAt === null) return latest
  if (expiresAt <= latest + EXPIRY_TOLERANCE_MS) return Math.min(expiresAt, latest)
  const message = `must not be more than ${days(policy.keyDaysMax)} from now, by the policy of the workspace`
  const remedy = actor.kind === 'operator' ? ' Override the policy with --force.' : ''
  throw new Fault('invalid_request', {
    message: `The expiry of the API key ${message}.${remedy}`,
    details: [{ path: '/expiresAt', message }],
  })
}

const isForced = (actor: Actor): boolean => actor.kind === 'operator' && actor.force === true

/**
 * Throws if the policy does not let the actor create a key with this expiry, which is from `expiryByPolicy`.
 * Returns whether the operator overrides the policy.
 */
export async function requireMayCreateKey(
  db: Tx,
  { actor, clock }: Context,
  workspace: LockedWorkspace,
  expiresAt: number | null,
): Promise<{ isForced: boolean }> {
  const policy = policyOf(workspace)
  requireNotArchived(workspace)
  if (actor.kind === 'key' && !policy.keysManageKeys) throw managedByUsers('create')
  if (actor.kind === 'person' && policy.keyCreators === 'owner') {
    const role = await lockRole(db, workspace.id, actor.id)
    if (role !== 'owner')
      throw new Fault('forbidden', {
        message: 'The policy of this workspace lets only owners create API keys.',
      })
  }
  if ((expiresAt ?? Number.POSITIVE_INFINITY) <= latestExpiry(policy, clock())) return { isForced: false }
  if (!isForced(actor)) throw new Error('the expiry of the key is not from expiryByPolicy')
  return { isForced: true }
}

/** A key may always revoke itself: anyone who finds a leaked key can revoke it. */
export function requireMayRevokeKey({ actor }: Context, workspace: LockedWorkspace, id: string): void {
  if (actor.kind === 'key' && actor.id !== id && !policyOf(workspace).keysManageKeys)
    throw managedByUsers('revoke')
}

/** The public API has no 403. */
function managedByUsers(verb: 'create' | 'revoke'): Fault {
  const message =
    `The policy of this workspace does not let API keys ${verb} API keys. ` +
    `An admin or owner can ${verb} them in the dashboard`
  return new Fault('invalid_request', { message: `${message}.`, details: [{ path: '', message }] })
}

const days = (count: number) => `${count} ${count === 1 ? 'day' : 'days'}`

export function requireNotArchived({ archived_at }: Pick<LockedWorkspace, 'archived_at'>): void {
  if (archived_at === null) return
  throw new Fault('forbidden', {
    message: 'This workspace is archived. The operator can restore it within 30 days.',
  })
}

/** An identity provider has its own second factor. That does not count for users who also have a password. */
export const lacksTwoFactor = (user: Pick<UserRow, 'two_factor_enabled'>, withPassword: boolean): boolean =>
  withPassword && user.two_factor_enabled !== 1

export async function usesTwoFactor(db: Db, userId: string): Promise<boolean> {
  const user = await findUser(db, userId)
  return user !== undefined && !lacksTwoFactor(user, await hasPassword(db, userId))
}

/** A member who does not use it, though the workspace requires it, can only set it up. */
export async function requireTwoFactor(
  db: Db,
  { two_factor_required_at }: Pick<PolicyColumns, 'two_factor_required_at'>,
  userId: string,
): Promise<void> {
  if (two_factor_required_at === null || (await usesTwoFactor(db, userId))) return
  throw new Fault('forbidden', {
    message:
      'This workspace requires two-factor authentication. Set it up in the settings of your account first.',
  })
}
