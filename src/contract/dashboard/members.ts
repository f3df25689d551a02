// Members of a workspace, their roles, and invitations.
import Type from 'typebox'
import { Email, Id, Instant, Slug, UserName } from '../fields.ts'
import { operation, type Role as RoleName, roles, STRICT } from '../operation.ts'

export const InWorkspace = { workspace: Slug }

export const Role = Type.Unsafe<RoleName>({
  type: 'string',
  enum: roles,
  description:
    'Owners may do everything; admins manage API keys, invitations and members; members have read access.',
})

const Member = Type.Object(
  {
    id: Id,
    name: UserName,
    email: Email,
    role: Role,
    joinedAt: Instant,
    isYou: Type.Boolean({ description: 'Whether it is the signed-in user.' }),
    isLastOwner: Type.Boolean({
      description: 'Whether no other owner can sign in, so that this one must keep the role.',
    }),
  },
  { title: 'Member' },
)

const Invitation = Type.Object(
  {
    id: Id,
    email: Email,
    role: Role,
    invitedBy: Type.Object(
      {
        kind: Type.Unsafe<'user' | 'operator'>({ type: 'string', enum: ['user', 'operator'] }),
        name: Type.String(),
      },
      { description: 'The user who created the invitation, with the name at that time, or the operator.' },
    ),
    createdAt: Instant,
    expiresAt: Instant,
  },
  { title: 'Invitation' },
)

const member = {
  id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5',
  name: 'Ann Example',
  email: 'ann@example.com',
  role: 'owner',
  joinedAt: '2026-11-01T09:30:00.000Z',
  isYou: true,
  isLastOwner: true,
}
const invitation = {
  id: 'lnk_01k9x2m4q7r8s9t0v1w2x3y4z5',
  email: 'bob@example.com',
  role: 'member',
  invitedBy: { kind: 'user' as const, name: 'Ann Example' },
  createdAt: '2026-11-15T09:30:00.000Z',
  expiresAt: '2026-11-16T09:30:00.000Z',
}

const listMembers = operation({
  id: 'members.list',
  method: 'GET',
  path: '/workspaces/{workspace}/members',
  access: 'member',
  summary: 'List members and invitations',
  description: 'Lists the members of the workspace, owners first, and open invitations.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'Members and invitations.',
    schema: Type.Object(
      { members: Type.Array(Member), invitations: Type.Array(Invitation) },
      { title: 'Members' },
    ),
    example: { members: [member], invitations: [invitation] },
  },
  faults: [],
})

const invite = operation({
  id: 'invitations.create',
  method: 'POST',
  path: '/workspaces/{workspace}/invitations',
  access: 'admin',
  summary: 'Invite a user',
  description:
    'Creates an invitation link, which works once, for 24 hours. If mail is configured, the link is sent ' +
    'to the address; otherwise it is in this response. Only an owner may invite an owner.',
  params: Type.Object(InWorkspace),
  body: Type.Object({ email: Email, role: Role }, { title: 'NewInvitation', ...STRICT }),
  response: {
    status: 201,
    description: 'The invitation.',
    schema: Type.Object(
      {
        ...Invitation.properties,
        link: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description: 'The invitation link, which cannot be retrieved again; null if it was sent by mail.',
        }),
      },
      { title: 'NewInvitationLink' },
    ),
    example: { ...invitation, link: 'https://adit.example.com/link#…' },
    secret: true,
  },
  faults: ['conflict', 'rate_limited'],
})

const revokeInvitation = operation({
  id: 'invitations.revoke',
  method: 'DELETE',
  path: '/workspaces/{workspace}/invitations/{id}',
  access: 'admin',
  summary: 'Revoke an invitation',
  description: 'Invalidates the invitation link.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  response: {
    status: 200,
    description: 'The invitation was revoked.',
    schema: Type.Object({ id: Id, revoked: Type.Literal(true) }, { title: 'RevokedInvitation' }),
    example: { id: invitation.id, revoked: true },
  },
  faults: [],
})

const setRole = operation({
  id: 'members.set-role',
  method: 'POST',
  path: '/workspaces/{workspace}/members/{id}',
  access: 'admin',
  summary: 'Change a role',
  description:
    'Takes effect with the next request of the member. Only an owner may promote to or demote an owner, ' +
    'and the last owner cannot be demoted.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  body: Type.Object({ role: Role }, { title: 'NewRole', ...STRICT }),
  response: {
    status: 200,
    description: 'The member with the new role.',
    schema: Member,
    example: member,
  },
  faults: ['conflict'],
})

const removed = Type.Object({ id: Id, removed: Type.Literal(true) }, { title: 'RemovedMember' })

const removeMember = operation({
  id: 'members.remove',
  method: 'DELETE',
  path: '/workspaces/{workspace}/members/{id}',
  access: 'admin',
  summary: 'Remove a member',
  description:
    'Takes effect with the next request of the member. API keys that the member created stay active; ' +
    'revoke them separately. Only an owner may remove an owner, and the last owner cannot be removed.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  response: {
    status: 200,
    description: 'The member was removed.',
    schema: removed,
    example: { id: member.id, removed: true },
  },
  faults: ['conflict'],
})

const leave = operation({
  id: 'members.leave',
  method: 'DELETE',
  path: '/workspaces/{workspace}/membership',
  access: 'member',
  summary: 'Leave the workspace',
  description: 'The last owner cannot leave.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'You left the workspace.',
    schema: removed,
    example: { id: member.id, removed: true },
  },
  faults: ['conflict'],
})

export const memberOperations = [listMembers, invite, revokeInvitation, setRole, removeMember, leave] as const
