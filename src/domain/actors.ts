// Whoever acts must still be allowed to in the very transaction of the act. Without this, whoever holds a leaked key or a
// stolen session could begin a request, take seconds to send its body, and act after the revocation was acknowledged.
import { lockActiveKey } from '../store/keys.ts'
import { lockRole, type Role } from '../store/members.ts'
import { lockSession } from '../store/sessions.ts'
import type { Tx } from '../store/store.ts'
import type { Context, UserActor } from './context.ts'
import { Fault } from './fault.ts'

/** Said at the door, and to a key that is revoked while its request is under way. */
export const KEY_REVOKED = 'This API key was revoked. Use another one.'
export const SIGNED_OUT = 'You are not signed in. Sign in and try again.'

const ranks: Record<Role, number> = { member: 1, admin: 2, owner: 3 }

export const isAtLeast = (role: Role, needed: Role): boolean => ranks[role] >= ranks[needed]

export function requireRole(role: Role | undefined, needed: Role): void {
  // Not yours looks exactly like not there.
  if (role === undefined) throw new Fault('not_found')
  if (isAtLeast(role, needed)) return
  const who = needed === 'owner' ? 'Only owners' : 'Only admins and owners'
  throw new Fault('forbidden', { message: `${who} of this workspace may do this.` })
}

/** What it finds stays so until the transaction ends. */
export async function reauthorize(db: Tx, { actor, workspaceId }: Context): Promise<void> {
  switch (actor.kind) {
    case 'operator':
      return
    case 'visitor':
      throw new Fault('unauthorized', { message: SIGNED_OUT })
    case 'key':
      if (await lockActiveKey(db, workspaceId, actor.id)) return
      throw new Fault('unauthorized', { message: KEY_REVOKED })
    case 'person':
      await requireRoleForUpdate(db, workspaceId, actor)
  }
}

/** The role that a person has now, not the one from when the request began: the latter may have been taken away. */
export async function requireRoleForUpdate(db: Tx, workspaceId: string, actor: UserActor): Promise<Role> {
  await requireSession(db, actor)
  const role = await lockRole(db, workspaceId, actor.id)
  requireRole(role, actor.session?.needs ?? 'owner')
  return role as Role
}

export async function requireSession(db: Tx, { id, session }: UserActor): Promise<void> {
  if (!session || !(await lockSession(db, id, session.id)))
    throw new Fault('unauthorized', { message: SIGNED_OUT })
}
