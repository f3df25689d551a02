// People in a workspace: who they are, what they may do, and how they come and go. At least one owner always remains.
import { endInvitationsBy, listInvitations, revokeInvitation as revokeInvitationOf } from '../store/links.ts'
import {
  deleteMember,
  findMembership,
  listMembers,
  listMemberships,
  lockMembers,
  type Role,
  setRole as setRoleOf,
} from '../store/members.ts'
import type { Tx } from '../store/store.ts'
import { findUserByEmail } from '../store/users.ts'
import { lockWorkspace } from '../store/workspaces.ts'
import { isAtLeast, requireRole, requireRoleForUpdate } from './actors.ts'
import { type AuditAction, writeAudit } from './audit.ts'
import type { Context, Services, UserActor } from './context.ts'
import { Fault } from './fault.ts'
import { requireInvitationAllowed } from './link-limits.ts'
import { type CreatedLink, createLink } from './links.ts'
import { isoOf } from './timestamps.ts'

/** Members and open invitations of a workspace, which are listed together and not in pages. */
const MEMBERS_MAX = 1_000

/** A person acting in a workspace. */
export interface MemberContext extends Context {
  actor: UserActor
  /** As it was when the request began; what acts asks again, in its transaction. */
  role: Role
}

export async function requireMembership(services: Services, slug: string, userId: string, needed: Role) {
  const found = await findMembership(services.store.db, slug, userId)
  requireRole(found?.role, needed)
  return found as NonNullable<typeof found>
}

export const membershipsOf = (services: Services, userId: string) =>
  listMemberships(services.store.db, userId)

const order: Role[] = ['owner', 'admin', 'member']

export async function listMembersAndInvitations(ctx: MemberContext) {
  const { db } = ctx.store
  const [people, invitations] = await Promise.all([
    listMembers(db, ctx.workspaceId),
    listInvitations(db, ctx.workspaceId, ctx.clock()),
  ])
  people.sort((a, b) => order.indexOf(a.role) - order.indexOf(b.role))
  return {
    people: people.map((person) => describeMember(ctx, person, people)),
    invitations: invitations.flatMap((row) =>
      // The set-up link of a new workspace is for whoever opens it, and no invitation of somebody.
      row.email === null
        ? []
        : [
            {
              id: row.id,
              email: row.email,
              role: row.role as Role,
              invitedBy: row.created_by,
              createdAt: isoOf(row.created_at),
              expiresAt: isoOf(row.expires_at),
            },
          ],
    ),
  }
}

type MemberRow = Awaited<ReturnType<typeof listMembers>>[number]

const describeMember = (ctx: MemberContext, person: MemberRow, members: MemberRow[]) => ({
  id: person.id,
  name: person.name,
  email: person.email,
  role: person.role,
  joinedAt: isoOf(person.joinedAt),
  isYou: person.id === ctx.actor.id,
  isLastOwner: person.role === 'owner' && !members.some((one) => one.id !== person.id && isActiveOwner(one)),
})

/** `mails` tells whether the link goes to its address alone, and so proves that whoever has it owns the address. */
export async function invite(
  ctx: MemberContext,
  given: { email: string; role: Role },
  { mails }: { mails: boolean },
): Promise<CreatedLink> {
  const email = given.email.toLowerCase()
  return ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx.workspaceId, ctx.actor)
    requireMayGrant(role, given.role)
    const user = await findUserByEmail(db, email)
    // Locked, so that invitations at once are counted one after the other.
    await lockWorkspace(db, ctx.workspaceId)
    const members = await listMembers(db, ctx.workspaceId)
    if (user && members.some(({ id }) => id === user.id))
      throw new Fault('conflict', { message: `${email} belongs to this workspace already.` })
    const open = await listInvitations(db, ctx.workspaceId, ctx.clock())
    requireRoom(members.length + open.filter((one) => one.email !== email).length)
    await requireInvitationAllowed(db, ctx, {
      workspaceId: ctx.workspaceId,
      inviterId: ctx.actor.id,
      email,
    })
    // The new one takes the place of what was sent before.
    for (const before of open)
      if (before.email === email) {
        requireMayGrant(role, before.role as Role)
        await record(db, ctx, 'invitation.revoked', { id: before.id, name: email })
      }
    const made = await createLink(db, ctx, {
      purpose: 'join',
      email,
      workspaceId: ctx.workspaceId,
      role: given.role,
      createdBy: { id: ctx.actor.id, name: ctx.actor.name },
      provesEmail: mails,
    })
    await record(db, ctx, 'person.invited', { id: made.id, name: `${email} as ${given.role}` })
    return made
  })
}

function requireRoom(taken: number): void {
  if (taken < MEMBERS_MAX) return
  throw new Fault('conflict', {
    message:
      `The workspace has ${MEMBERS_MAX} members and open invitations, which is the limit. ` +
      'Remove members or revoke invitations, then try again.',
  })
}

export async function revokeInvitation(ctx: MemberContext, id: string) {
  await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx.workspaceId, ctx.actor)
    const row = await revokeInvitationOf(db, ctx.workspaceId, id, ctx.clock())
    if (!row || row.email === null) throw new Fault('not_found')
    requireMayGrant(role, row.role as Role)
    await record(db, ctx, 'invitation.revoked', { id, name: row.email })
  })
  return { id, revoked: true as const }
}

export async function setRole(ctx: MemberContext, id: string, wanted: Role) {
  await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx.workspaceId, ctx.actor)
    const person = await requireMayTouch(db, ctx, role, id)
    requireMayGrant(role, wanted)
    if (person.role === wanted) return
    if (person.role === 'owner') requireAnotherOwner(person.others)
    await setRoleOf(db, ctx.workspaceId, id, wanted)
    if (!isAtLeast(wanted, person.role)) await endInvitationsBy(db, ctx.workspaceId, id, ctx.clock())
    await record(db, ctx, `person.made-${wanted}`, person)
  })
  const members = await listMembers(ctx.store.db, ctx.workspaceId)
  const person = members.find((one) => one.id === id)
  if (!person) throw new Fault('not_found')
  return describeMember(ctx, person, members)
}

export async function removeMember(ctx: MemberContext, id: string) {
  await ctx.store.transaction(async (db) => {
    const role = await requireRoleForUpdate(db, ctx.workspaceId, ctx.actor)
    const person = await requireMayTouch(db, ctx, role, id)
    if (person.role === 'owner') requireAnotherOwner(person.others)
    await deleteMember(db, ctx.workspaceId, id)
    // Nobody comes back by an invitation of their own.
    await endInvitationsBy(db, ctx.workspaceId, id, ctx.clock())
    await record(db, ctx, id === ctx.actor.id ? 'person.left' : 'person.removed', person)
  })
  return { id, removed: true as const }
}

/** One may always go, and touch those below; an owner touches everybody. The members are held until the end. */
async function requireMayTouch(db: Tx, ctx: MemberContext, role: Role, id: string) {
  await lockMembers(db, ctx.workspaceId)
  const members = await listMembers(db, ctx.workspaceId)
  const found = members.find((one) => one.id === id)
  if (!found) throw new Fault('not_found')
  const isSelf = id === ctx.actor.id
  if (!isSelf && found.role === 'owner' && role !== 'owner')
    throw new Fault('forbidden', { message: 'Only owners of this workspace may change or remove an owner.' })
  return { ...found, others: members.filter((one) => one.id !== id) }
}

/** Nobody hands out, or takes back, more than they have. */
function requireMayGrant(own: Role, role: Role): void {
  if (isAtLeast(own, role)) return
  throw new Fault('forbidden', { message: 'Only owners of this workspace may make somebody an owner.' })
}

/** A disabled owner cannot sign in, so does not count as the owner that a workspace needs. */
const isActiveOwner = ({ role, disabledAt }: Pick<MemberRow, 'role' | 'disabledAt'>): boolean =>
  role === 'owner' && disabledAt === null

function requireAnotherOwner(others: Pick<MemberRow, 'role' | 'disabledAt'>[]): void {
  if (others.some(isActiveOwner)) return
  throw new Fault('conflict', {
    message: 'A workspace needs an owner, and this is the last one. Make somebody else an owner first.',
  })
}

const record = (db: Tx, ctx: MemberContext, action: AuditAction, subject: { id: string; name: string }) =>
  writeAudit(db, ctx, {
    workspaceId: ctx.workspaceId,
    actor: ctx.actor,
    action,
    subjectId: subject.id,
    subjectName: subject.name,
  })
