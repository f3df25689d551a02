// Changing the policy of a workspace. Nodes read it in each writing transaction, so only what it revokes has
// to be propagated.
import { shareMembers } from '../../store/accounts/members.ts'
import { lacksTwoFactor } from '../../store/accounts/two-factors.ts'
import type { Tx } from '../../store/engine/store.ts'
import { setPolicy } from '../../store/workspaces.ts'
import { awaitPropagation } from '../../verification/propagation.ts'
import { reauthorize } from '../actors.ts'
import { changesBetween } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { MemberContext } from '../context.ts'
import { recordUpdate } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { type Policy, readPolicy } from '../workspaces/policy.ts'
import { revokeKeysWithoutTwoFactor } from './personal.ts'

/** When it returns, no node accepts personal keys of users without required two-factor authentication. */
export async function changePolicy(ctx: MemberContext, changedRules: Partial<Policy>): Promise<Policy> {
  const { policy, change } = await ctx.store.transaction((db) => updatePolicy(db, ctx, changedRules))
  if (policy.twoFactorRequired) await awaitPropagation(ctx, change)
  return policy
}

async function updatePolicy(db: Tx, ctx: MemberContext, changedRules: Partial<Policy>) {
  const { workspaceId, actor } = ctx
  const workspace = await reauthorize(db, ctx)
  const before = readPolicy(workspace, ctx.variant)
  const policy = { ...before, ...changedRules }
  const changes = changesBetween({ ...before }, { ...policy })
  if (Object.keys(changes).length === 0) return { policy }
  const startsTwoFactor = policy.twoFactorRequired && !before.twoFactorRequired
  if (startsTwoFactor && (await lacksTwoFactor(db, actor.id)))
    throw new Fault('conflict', {
      message:
        'Set up two-factor authentication for your own account first. Otherwise you would lose access to ' +
        'this workspace.',
    })
  await setPolicy(db, workspaceId, toColumns(policy, ctx.clock()))
  await writeAudit(db, ctx, {
    workspaceId,
    actor,
    action: 'workspace.policy-changed',
    target: { id: workspaceId, name: workspace.name },
    changes,
  })
  await recordUpdate(db, ctx, { workspaceId, actor, changes })
  if (!startsTwoFactor) return { policy }
  await shareMembers(db, workspaceId)
  return { policy, change: await revokeKeysWithoutTwoFactor(db, ctx, actor, { workspaceId }) }
}

const toColumns = (policy: Policy, now: number) => ({
  key_days_max: policy.keyDaysMax,
  keys_read_only_at: policy.keysManageKeys ? null : now,
  key_creator_role: policy.keyCreators === 'member' ? null : policy.keyCreators,
  two_factor_required_at: policy.twoFactorRequired ? now : null,
})
