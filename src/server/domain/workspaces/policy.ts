// The policy of a workspace, which its owners set: what members and API keys may do in it. It is read and
// enforced in the transaction that writes, from the locked row of the workspace, so that no request that
// started earlier can violate a new policy.
import type { Static } from 'typebox'
import type { Policy as PolicySchema } from '../../../contract/dashboard/settings.ts'
import type { Variant } from '../../../contract/variants.ts'
import { DAY_MS, SECOND_MS } from '../../../lib/time.ts'
import type { PolicyColumns, WorkspaceRules } from '../../store/workspaces.ts'
import type { Caller } from '../context.ts'
import { Fault } from '../fault.ts'

export type Policy = Static<typeof PolicySchema>

/** In variant B, members create no keys: they request them. */
export const readPolicy = (row: PolicyColumns, variant: Variant): Policy => ({
  keyDaysMax: row.key_days_max,
  keysManageKeys: row.keys_read_only_at === null,
  keyCreators: row.key_creator_role ?? (variant === 'A' ? 'member' : 'admin'),
  twoFactorRequired: row.two_factor_required_at !== null,
})

/** Covers dates chosen in another time zone and browser clocks that are ahead. */
const EXPIRY_TOLERANCE_MS = DAY_MS

/** Maximum lifetime of a key in days; null if unlimited, or if the operator overrides the policy. */
export const keyDaysMaxFor = (workspace: WorkspaceRules, actor: Caller): number | null =>
  actor.kind === 'operator' && actor.force ? null : workspace.key_days_max

const latestExpiry = (keyDaysMax: number, createdAt: number): number =>
  Math.floor((createdAt + keyDaysMax * DAY_MS) / SECOND_MS) * SECOND_MS

interface KeyLifetime {
  createdAt: number
  expiresAt: number | null
}

/**
 * The expiry of a new key. Without one, the key gets the maximum lifetime of the policy, because the public
 * API has no field for it.
 */
export function expiryByPolicy(
  workspace: WorkspaceRules,
  actor: Caller,
  { createdAt, expiresAt }: KeyLifetime,
): number | null {
  const keyDaysMax = keyDaysMaxFor(workspace, actor)
  if (keyDaysMax === null) return expiresAt
  const latest = latestExpiry(keyDaysMax, createdAt)
  if (expiresAt === null) return latest
  if (expiresAt <= latest + EXPIRY_TOLERANCE_MS) return Math.min(expiresAt, latest)
  const limit = days(keyDaysMax)
  const remedy = actor.kind === 'operator' ? ' Override the policy with --force.' : ''
  throw new Fault('invalid_request', {
    message: `The policy of this workspace limits API keys to ${limit}.${remedy}`,
    details: [
      {
        path: '/expiresAt',
        message: `must not be more than ${limit} from now, by the policy of the workspace`,
      },
    ],
  })
}

/** Whether the key is valid for longer than the policy allows, because an operator has overridden it. */
export function overridesPolicy(workspace: WorkspaceRules, { createdAt, expiresAt }: KeyLifetime): boolean {
  const { key_days_max: keyDaysMax } = workspace
  if (keyDaysMax === null) return false
  return expiresAt === null || expiresAt > latestExpiry(keyDaysMax, createdAt)
}

const days = (count: number) => `${count} ${count === 1 ? 'day' : 'days'}`
