// People of a workspace: members, their roles, and invitations.
import Type from 'typebox'
import { Email, Id, Instant, Slug, UserName } from '../fields.ts'
import { operation, type Role as RoleName, roles } from '../operation.ts'

export const InWorkspace = { workspace: Slug }

export const Role = Type.Unsafe<RoleName>({
  type: 'string',
  enum: roles,
  description: 'An owner may do everything; an admin manages keys, invitations and members; a member looks.',
})

const Member = Type.Object(
  {
    id: Id,
    name: UserName,
    email: Email,
    role: Role,
    joinedAt: Instant,
    isYou: Type.Boolean({ description: 'Whether it is the one who asks.' }),
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
    invitedBy: Type.String({ description: 'Who invited.' }),
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
  invitedBy: 'Ann Example',
  createdAt: '2026-11-15T09:30:00.000Z',
  expiresAt: '2026-11-16T09:30:00.000Z',
}

const listMembers = operation({
  id: 'members.list',
  method: 'GET',
  path: '/workspaces/{workspace}/people',
  access: 'member',
  summary: 'List people and invitations',
  description:
    'Everybody who belongs to the workspace, owners first, and the invitations that are still open.',
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The people.',
    schema: Type.Object(
      { people: Type.Array(Member), invitations: Type.Array(Invitation) },
      { title: 'Members' },
    ),
    example: { people: [member], invitations: [invitation] },
  },
  faults: [],
})

const invite = operation({
  id: 'invitations.create',
  method: 'POST',
  path: '/workspaces/{workspace}/invitations',
  access: 'admin',
  summary: 'Invite somebody',
  description:
    'Makes a link that lets its holder join the workspace, once and within 24 hours. Where mail is configured it is sent ' +
    'to the address and to nobody else; otherwise it is in this answer, once, to be handed on. Only an owner may invite ' +
    'an owner.',
  params: Type.Object(InWorkspace),
  body: Type.Object({ email: Email, role: Role }, { title: 'NewInvitation' }),
  response: {
    status: 201,
    description: 'The invitation, with its link.',
    schema: Type.Object(
      {
        ...Invitation.properties,
        link: Type.Unsafe<string | null>({
          type: ['string', 'null'],
          description:
            'The address to open, in this answer and nowhere else; null where it was sent by mail.',
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
  description: 'Its link works no more.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  response: {
    status: 200,
    description: 'It is revoked.',
    schema: Type.Object({ id: Id, revoked: Type.Literal(true) }, { title: 'RevokedInvitation' }),
    example: { id: invitation.id, revoked: true },
  },
  faults: [],
})

const setRole = operation({
  id: 'members.set-role',
  method: 'POST',
  path: '/workspaces/{workspace}/people/{id}',
  access: 'admin',
  summary: 'Change a role',
  description:
    'In force from the person’s next request on. Only an owner may make or change an owner, and one always remains.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  body: Type.Object({ role: Role }, { title: 'NewRole' }),
  response: {
    status: 200,
    description: 'The person with the new role.',
    schema: Member,
    example: member,
  },
  faults: ['conflict'],
})

const removed = Type.Object({ id: Id, removed: Type.Literal(true) }, { title: 'RemovedMember' })

const removeMember = operation({
  id: 'members.remove',
  method: 'DELETE',
  path: '/workspaces/{workspace}/people/{id}',
  access: 'admin',
  summary: 'Remove somebody',
  description:
    'The person belongs to the workspace no more, from the next request on. Keys that the person made stay; revoke them ' +
    'where they should not. Only an owner may remove an owner, and one always remains.',
  params: Type.Object({ ...InWorkspace, id: Id }),
  response: {
    status: 200,
    description: 'Removed.',
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
    description: 'You belong to it no more.',
    schema: removed,
    example: { id: member.id, removed: true },
  },
  faults: ['conflict'],
})

export const memberOperations = [listMembers, invite, revokeInvitation, setRole, removeMember, leave] as const
