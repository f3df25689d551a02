// Members of a workspace: list, invite, change roles, remove. At least one owner always remains.

import type { AuditAction } from '../../../contract/audit-actions.ts'
import {
  clearEmailProof,
  endLinks,
  listInvitations,
  revokeInvitation as revokeRow,
} from '../../store/accounts/links.ts'
import {
  deleteMember,
  findMembership,
  listMembers,
  lockMembers,
  type Role,
  setRole as updateRole,
} from '../../store/accounts/members.ts'
import { findUserByEmail } from '../../store/accounts/users.ts'
import type { Tx } from '../../store/engine/store.ts'
import { awaitPropagation, publishChanges } from '../../verification/propagation.ts'
import { isAtLeast, requireNotArchived, requireRole, requireRoleForUpdate } from '../actors.ts'
import type { Changes } from '../audit/changes.ts'
import { writeAudit } from '../audit/entries.ts'
import type { MemberContext, Services } from '../context.ts'
import { eventActor, memberInEvent, recordEvent, recordInvitation } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { revokePersonalKeys } from '../keys/personal.ts'
import { toIso } from '../timestamps.ts'
import { requireTwoFactor } from '../two-factor.ts'
import { requireInvitationAllowed } from './link-limits.ts'
import { type CreatedLink, createLink, describeInviter } from './links.ts'

/** Members plus open invitations of a workspace, because they are listed without pages. */
const MEMBERS_MAX = 1_000

export async function requireMembership(services: Services, slug: string, userId: string, needed: Role) {
  const { db } = services.store
  const found = await findMembership(db, slug, userId)
  if (!found) throw new Fault('not_found')
  requireRole(found.role, needed)
  requireNotArchived({ ...found, slug }, { kind: 'user' })
  await requireTwoFactor(db, found, userId)
  return found
}

const order: Role[] = ['owner', 'admin', 'member']

export async function listMembersAndInvitations(ctx: MemberContext) {
  const { db } = ctx.store
  const [members, invitations] = await Promise.all([
    listMembers(db, ctx.workspaceId),
    listInvitations(db, ctx.workspaceId, ctx.clock()),
  ])
  members.sort((a, b) => order.indexOf(a.role) - order.indexOf(b.role))
  return {
    members: members.map((member) => describeMember(ctx, member, members)),
    invitations: invitations.flatMap((row) =>
      // The setup link of a new workspace has no address and is not an invitation.
      row.email === null
        ? []
        : [
            {
              id: row.id,
              email: row.email,
              role: row.role as Role,
              invitedBy: describeInviter(row),
              createdAt: toIso(row.created_at),
              expiresAt: toIso(row.expires_at),
            },
          ],
    ),
  }
}

type MemberRow = Awaited<ReturnType<typeof listMembers>>[number]

const describeMember = (ctx: MemberContext, member: MemberRow, members: MemberRow[]) => ({
  id: member.id,
  name: member.name,
  email: member.email,
  role: member.role,
  joinedAt: toIso(member.joinedAt),
  isYou: member.id === ctx.actor.id,
  isLastOwner:
    member.role === 'owner' && !members.some((other) => other.id !== member.id && isActiveOwner(other)),
})

/** `mails`: the link is sent to the address only, so using it proves control of the address. */
export async function invite(
  ctx: MemberContext,
  input: { email: string; role: Role },
  { mails }: { mails: boolean },
): Promise<CreatedLink> {
  const email = input.email.toLowerCase()
  return ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx)
    requireMayGrant(role, input.role)
    const user = await findUserByEmail(db, email)
    const members = await listMembers(db, ctx.workspaceId)
    if (user && members.some(({ id }) => id === user.id))
      throw new Fault('conflict', { message: `${email} is already a member of this workspace.` })
    const open = await listInvitations(db, ctx.workspaceId, ctx.clock())
    requireCapacity(members.length + open.filter((invitation) => invitation.email !== email).length)
    await requireInvitationAllowed(db, ctx, {
      workspaceId: ctx.workspaceId,
      inviterId: ctx.actor.id,
      email,
    })
    // The new invitation replaces earlier ones to the address.
    for (const { id, role: oldRole, ...replaced } of open)
      if (replaced.email === email) {
        requireMayGrant(role, oldRole as Role)
        await record(db, ctx, 'invitation.revoked', { id, name: email }, { role: [oldRole, null] })
      }
    const link = await createLink(db, ctx, {
      purpose: 'join',
      email,
      workspaceId: ctx.workspaceId,
      role: input.role,
      createdBy: { id: ctx.actor.id, name: ctx.actor.name },
      provesEmail: mails,
    })
    await record(db, ctx, 'user.invited', { id: link.id, name: email }, { role: [null, input.role] })
    await recordInvitation(db, ctx, { ...ctx, invitation: { ...link, email, role: input.role } })
    return link
  })
}

/** After this, the invitation no longer proves control of the address, so its link may be shown to others. */
export const discloseInvitation = (ctx: MemberContext, id: string): Promise<void> =>
  ctx.store.transaction((db) => clearEmailProof(db, id))

function requireCapacity(count: number): void {
  if (count < MEMBERS_MAX) return
  throw new Fault('conflict', {
    message:
      `The workspace has ${MEMBERS_MAX} members and open invitations, which is the limit. ` +
      'Remove members or revoke invitations, then try again.',
  })
}

export async function revokeInvitation(ctx: MemberContext, id: string) {
  await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx)
    const row = await revokeRow(db, ctx.workspaceId, id, ctx.clock())
    if (!row || row.email === null) throw new Fault('not_found')
    requireMayGrant(role, row.role as Role)
    await record(db, ctx, 'invitation.revoked', { id, name: row.email }, { role: [row.role, null] })
  })
  return { id, revoked: true as const }
}

export async function setRole(ctx: MemberContext, id: string, newRole: Role) {
  await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx)
    const member = await requireMayChange(db, ctx, role, id)
    requireMayGrant(role, newRole)
    if (member.role === newRole) return
    if (member.role === 'owner') requireAnotherOwner(member.others)
    await updateRole(db, ctx.workspaceId, id, newRole)
    if (!isAtLeast(newRole, member.role))
      await endLinks(db, { workspace_id: ctx.workspaceId, creator_id: id }, ctx.clock())
    await record(db, ctx, `user.made-${newRole}`, member, { role: [member.role, newRole] })
    await recordEvent(db, ctx, {
      workspaceId: ctx.workspaceId,
      type: 'member.updated',
      data: {
        member: memberInEvent(member, newRole),
        previousRole: member.role,
        actor: eventActor(ctx.actor),
      },
    })
  })
  const members = await listMembers(ctx.store.db, ctx.workspaceId)
  const member = members.find((each) => each.id === id)
  if (!member) throw new Fault('not_found')
  return describeMember(ctx, member, members)
}

/** Revokes the personal keys of the member. When this returns, no node accepts them. */
export async function removeMember(ctx: MemberContext, id: string) {
  const position = await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx)
    const member = await requireMayChange(db, ctx, role, id)
    if (member.role === 'owner') requireAnotherOwner(member.others)
    await deleteMember(db, ctx.workspaceId, id)
    // A removed member must not return with an invitation of their own.
    await endLinks(db, { workspace_id: ctx.workspaceId, creator_id: id }, ctx.clock())
    const action = id === ctx.actor.id ? 'user.left' : 'user.removed'
    await record(db, ctx, action, member, { role: [member.role, null] })
    await recordEvent(db, ctx, {
      workspaceId: ctx.workspaceId,
      type: 'member.removed',
      data: { member: memberInEvent(member, member.role), actor: eventActor(ctx.actor) },
    })
    const { workspaceId } = ctx
    return publishChanges(db, ctx, await revokePersonalKeys(db, ctx, ctx.actor, { userId: id, workspaceId }))
  })
  await awaitPropagation(ctx, position)
  return { id, removed: true as const }
}

/** Users may change themselves, admins also members and admins, owners everyone. Locks all members. */
async function requireMayChange(db: Tx, ctx: MemberContext, role: Role, id: string) {
  await lockMembers(db, ctx.workspaceId)
  const members = await listMembers(db, ctx.workspaceId)
  const found = members.find((each) => each.id === id)
  if (!found) throw new Fault('not_found')
  const isSelf = id === ctx.actor.id
  if (!isSelf && found.role === 'owner' && role !== 'owner')
    throw new Fault('forbidden', { message: 'Only owners of this workspace may change or remove an owner.' })
  return { ...found, others: members.filter((each) => each.id !== id) }
}

/** Users may grant or revoke roles up to their own. */
function requireMayGrant(ownRole: Role, role: Role): void {
  if (isAtLeast(ownRole, role)) return
  throw new Fault('forbidden', { message: 'Only owners of this workspace may grant the owner role.' })
}

/** A disabled owner cannot sign in, so does not count as the owner that a workspace needs. */
export const isActiveOwner = ({ role, disabledAt }: Pick<MemberRow, 'role' | 'disabledAt'>): boolean =>
  role === 'owner' && disabledAt === null

function requireAnotherOwner(others: Pick<MemberRow, 'role' | 'disabledAt'>[]): void {
  if (others.some(isActiveOwner)) return
  throw new Fault('conflict', {
    message: 'This is the last owner of the workspace. Make another member an owner first.',
  })
}

const record = (
  db: Tx,
  { workspaceId, actor, ...services }: MemberContext,
  action: AuditAction,
  { id, name }: { id: string; name: string },
  changes: Changes,
) => writeAudit(db, services, { workspaceId, actor, action, target: { id, name }, changes })
