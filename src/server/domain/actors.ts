// A write authorizes its caller again in its transaction. Otherwise the holder of a leaked key or session
// could start a request, send its body slowly, and write after the revocation was acknowledged.
import { ARCHIVED_KEY, RESTORABLE_DAYS } from '../../lib/credentials/archive.ts'
import type { InactiveState } from '../../lib/credentials/key-state.ts'
import { DAY_MS } from '../../lib/time.ts'
import { lockRole, type Role, shareRole } from '../store/accounts/members.ts'
import { lockSession, type SessionTimes } from '../store/accounts/sessions.ts'
import type { Tx } from '../store/engine/store.ts'
import { lockKey } from '../store/keys/rows.ts'
import { lockWorkspace, readWorkspaceRules, type WorkspaceRules } from '../store/workspaces.ts'
import type { Actor, Context, KeyActor, Services, UserActor } from './context.ts'
import { Fault } from './fault.ts'
import { requireTwoFactor } from './two-factor.ts'

export const inactiveKeyMessages: Record<InactiveState | 'archived', string> = {
  revoked: 'This API key was revoked. Use another one.',
  expired: 'This API key has expired. Use another one.',
  archived: ARCHIVED_KEY,
}
export const SIGNED_OUT = 'You are not signed in. Sign in and try again.'

const ranks: Record<Role, number> = { member: 1, admin: 2, owner: 3 }

export const isAtLeast = (role: Role, needed: Role): boolean => ranks[role] >= ranks[needed]

export function requireRole(role: Role | undefined, needed: Role): void {
  // A workspace that the user is not a member of looks like one that does not exist.
  if (role === undefined) throw new Fault('not_found')
  if (isAtLeast(role, needed)) return
  const who = needed === 'owner' ? 'Only owners' : 'Only admins and owners'
  throw new Fault('forbidden', { message: `${who} of this workspace may do this.` })
}

export function requireNotArchived(
  { archived_at, slug }: Pick<WorkspaceRules, 'archived_at' | 'slug'>,
  { kind }: Pick<Actor, 'kind'>,
): void {
  if (archived_at === null) return
  throw new Fault('forbidden', {
    message:
      kind === 'operator'
        ? `The workspace "${slug}" is archived. Restore it with \`adit admin workspace restore ${slug}\`.`
        : `This workspace is archived. The operator can restore it within ${RESTORABLE_DAYS} days.`,
  })
}

export type { Role }

export interface AuthorizedWorkspace extends WorkspaceRules {
  /** The role of the user, or of the user of a personal key; undefined for other actors. */
  role?: Role | undefined
}

interface LockOptions {
  /**
   * Whether to lock the workspace. A revocation only reads the committed policy, because it must not wait for
   * a node that hangs while it creates a key.
   */
  lockWorkspace?: boolean
  /**
   * The key that the caller will revoke. If the request was sent with this key, the key is locked
   * exclusively. Any other key gets a shared lock, so that other requests with it do not wait.
   */
  revokedKeyId?: string
}

/** Locks everything that it checks until the transaction ends, first the workspace. */
export async function reauthorize(
  db: Tx,
  { actor, workspaceId, clock }: Context,
  { lockWorkspace: isLocked = true, revokedKeyId }: LockOptions = {},
): Promise<AuthorizedWorkspace> {
  const workspace = await (isLocked ? lockWorkspace : readWorkspaceRules)(db, workspaceId)
  if (actor.kind === 'user')
    return { ...workspace, role: await requireCurrentRole(db, { clock }, workspace, actor) }
  if (actor.kind !== 'key') return workspace
  const mode = actor.id === revokedKeyId ? 'exclusive' : 'shared'
  return { ...workspace, role: await requireActiveKey(db, workspace, actor, mode) }
}

/** Returns the role of a personal key's user. Locks it before the key, like the removal of a user. */
async function requireActiveKey(
  db: Tx,
  { id: workspaceId, archived_at }: WorkspaceRules,
  { id, userId }: KeyActor,
  mode: 'shared' | 'exclusive',
): Promise<Role | undefined> {
  const role = userId === null ? undefined : await shareRole(db, workspaceId, userId)
  // Keys are never deleted. A key that is missing after a restore counts as revoked, like a personal key
  // whose user is no longer a member.
  const state = (await lockKey(db, { workspaceId, id }, mode)) ?? 'revoked'
  if (state !== 'active') throw new Fault('unauthorized', { message: inactiveKeyMessages[state] })
  if (archived_at !== null) throw new Fault('unauthorized', { message: ARCHIVED_KEY })
  if (userId === null) return undefined
  if (role === undefined) throw new Fault('unauthorized', { message: inactiveKeyMessages.revoked })
  return role
}

/** Locks the workspace and returns the user's current role, which may be lower than at the start. */
export const requireRoleForUpdate = async (db: Tx, ctx: Context & { actor: UserActor }): Promise<Role> =>
  requireCurrentRole(db, ctx, await lockWorkspace(db, ctx.workspaceId), ctx.actor)

async function requireCurrentRole(
  db: Tx,
  services: Pick<Services, 'clock'>,
  workspace: WorkspaceRules,
  actor: UserActor,
): Promise<Role> {
  await requireSession(db, services, actor)
  const role = await lockRole(db, workspace.id, actor.id)
  requireRole(role, actor.session?.needs ?? 'owner')
  requireNotArchived(workspace, actor)
  // Locks the user, so that turning off two-factor authentication also revokes a key that is created here.
  if (workspace.two_factor_required_at !== null) await shareRole(db, workspace.id, actor.id)
  await requireTwoFactor(db, workspace, actor.id)
  return role as Role
}

export async function requireSession(
  db: Tx,
  { clock }: Pick<Services, 'clock'>,
  { id, session }: UserActor,
): Promise<void> {
  const times = session && (await lockSession(db, id, session.id))
  if (!times || sessionEnd(times) <= clock()) throw new Fault('unauthorized', { message: SIGNED_OUT })
}

/** Maximum lifetime of a session, even if it is in use. */
export const SESSION_MS_MAX = 14 * DAY_MS

export const sessionEnd = ({ created_at, expires_at }: SessionTimes): number =>
  Math.min(expires_at, created_at + SESSION_MS_MAX)
