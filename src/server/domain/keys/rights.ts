// What an actor may do with the API keys of a workspace. The actor is a user, a personal key, which has at
// most the rights of its user, a key of the workspace, or the operator. Writes check rights in their
// transaction, with the role and the policy that `reauthorize` has read there.
import type { PolicyColumns } from '../../store/workspaces.ts'
import { type AuthorizedWorkspace, isAtLeast, type Role, requireNotArchived } from '../actors.ts'
import type { Caller, Context, Services } from '../context.ts'
import { Fault } from '../fault.ts'
import { TWO_FACTOR_REQUIRED } from '../two-factor.ts'
import { readPolicy } from '../workspaces/policy.ts'

/** `own` means only personal keys of the acting user. */
type Scope = 'all' | 'own' | 'none'

interface KeyRights {
  creates: Scope
  /** A key may always revoke itself, so that anyone who finds a leaked key can revoke it. */
  revokes: Scope
}

const ALL: KeyRights = { creates: 'all', revokes: 'all' }
const NONE: KeyRights = { creates: 'none', revokes: 'none' }

type Rules = PolicyColumns & { role?: Role | undefined }

export function keyRights({ variant }: Pick<Services, 'variant'>, rules: Rules, actor: Caller): KeyRights {
  if (actor.kind === 'operator') return ALL
  const { keysManageKeys, keyCreators } = readPolicy(rules, variant)
  if (actor.kind === 'key' && (variant === 'B' || !keysManageKeys || !actor.managesKeys)) return NONE
  if (actor.kind === 'key' && actor.userId === null) return ALL
  const { role } = rules
  if (role === undefined) return NONE
  const scope = isAtLeast(role, 'admin') ? 'all' : 'own'
  return {
    creates: isAtLeast(role, keyCreators) ? scope : 'none',
    revokes: scope === 'own' && variant === 'B' ? 'none' : scope,
  }
}

/** The user whose personal keys the actor acts on; null for the operator and keys of the workspace. */
export function actingUserId(actor: Caller): string | null {
  if (actor.kind === 'user') return actor.id
  return actor.kind === 'key' ? actor.userId : null
}

/** `userId` is the user of the new personal key; null for a key of the workspace. */
export function requireMayCreateKey(
  ctx: Context,
  workspace: AuthorizedWorkspace,
  userId: string | null,
): void {
  const { actor, variant } = ctx
  requireNotArchived(workspace, actor)
  const { creates } = keyRights(ctx, workspace, actor)
  if (creates === 'all' || (creates === 'own' && userId !== null && userId === actingUserId(actor))) return
  const { keysManageKeys, keyCreators } = readPolicy(workspace, variant)
  if (actor.kind === 'key' && !actor.managesKeys) throw notAllowedToAgent('create')
  if (actor.kind === 'key' && !keysManageKeys) throw managedByUsers('create')
  throw forbid(actor, creates === 'own' ? NO_WORKSPACE_KEY : creatorsMessage(keyCreators, variant))
}

const NO_WORKSPACE_KEY =
  'Only admins and owners can create API keys of the workspace. Create a personal key, or ask one of them'

/** Why a user may not create a key, and what to do. */
function creatorsMessage(keyCreators: Role, variant: Services['variant']): string {
  const who = keyCreators === 'owner' ? 'owners' : 'admins and owners'
  const remedy =
    variant === 'B' ? 'Request one from them' : 'Ask one of them for a key, or to change the policy'
  return keyCreators === 'admin' && variant === 'B'
    ? `Only ${who} of this workspace can create API keys. ${remedy}`
    : `The policy of this workspace lets only ${who} create API keys. ${remedy}`
}

/** Why a user gets no key in a workspace, and what to do; null if they may create one. */
export function keyObstacle(
  services: Pick<Services, 'variant'>,
  rules: Rules,
  { userId, withoutTwoFactor }: { userId: string; withoutTwoFactor: boolean },
): string | null {
  const { variant } = services
  const { keyCreators, twoFactorRequired } = readPolicy(rules, variant)
  if (twoFactorRequired && withoutTwoFactor) return TWO_FACTOR_REQUIRED
  const { creates } = keyRights(services, rules, { kind: 'user', id: userId, name: '' })
  return creates === 'none' ? `${creatorsMessage(keyCreators, variant)}.` : null
}

/**
 * Returns the user whose personal keys the actor may revoke, or undefined if the actor may revoke any key.
 * The caller treats keys of other users as not found.
 */
export function requireMayRevokeKey(
  ctx: Context,
  workspace: AuthorizedWorkspace,
  id: string,
): string | undefined {
  const { actor } = ctx
  const { revokes } = keyRights(ctx, workspace, actor)
  if (revokes === 'all' || (actor.kind === 'key' && actor.id === id)) return undefined
  if (revokes === 'own') return actingUserId(actor) as string
  if (actor.kind === 'key') throw actor.managesKeys ? managedByUsers('revoke') : notAllowedToAgent('revoke')
  throw forbid(actor, 'Only admins and owners of this workspace can revoke API keys. Ask one of them')
}

const managedByUsers = (verb: 'create' | 'revoke') =>
  invalidRequest(
    `The policy of this workspace does not let API keys ${verb} API keys. ` +
      `An admin or owner can ${verb} them in the dashboard`,
  )

const notAllowedToAgent = (verb: 'create' | 'revoke') =>
  invalidRequest(
    `This agent was not allowed to manage API keys when it signed in. ` +
      `A user can ${verb} the key in the dashboard, or sign the agent in again and allow it`,
  )

const invalidRequest = (message: string) =>
  new Fault('invalid_request', { message: `${message}.`, details: [{ path: '', message }] })

/** API keys get 400, because the public API does not return 403. */
const forbid = ({ kind }: Caller, message: string): Fault =>
  kind === 'key' ? invalidRequest(message) : new Fault('forbidden', { message: `${message}.` })
