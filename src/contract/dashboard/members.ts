// Members of a workspace, their roles, and invitations.
import Type from 'typebox'
import { Email, Id, Instant, OneOf, ok, Slug, TextOrNull, UserName } from '../fields.ts'
import { operation, roles, STRICT } from '../operation.ts'

export const InWorkspace = { workspace: Slug }

export const Role = OneOf(roles)

const Member = Type.Object({
  id: Id,
  name: UserName,
  email: Email,
  role: Role,
  joinedAt: Instant,
  isYou: Type.Boolean(),
  /** Whether no other owner can sign in. */
  isLastOwner: Type.Boolean(),
})

const Invitation = Type.Object({
  id: Id,
  email: Email,
  role: Role,
  invitedBy: Type.Object({ kind: OneOf(['user', 'operator']), name: Type.String() }),
  createdAt: Instant,
  expiresAt: Instant,
})

const removed = Type.Object({ id: Id, removed: Type.Literal(true) })

export const memberOperations = [
  operation({
    id: 'members.list',
    method: 'GET',
    path: '/workspaces/{workspace}/members',
    access: 'member',
    summary: 'List members and invitations',
    params: Type.Object(InWorkspace),
    response: ok({ members: Type.Array(Member), invitations: Type.Array(Invitation) }),
  }),
  operation({
    id: 'invitations.create',
    method: 'POST',
    path: '/workspaces/{workspace}/invitations',
    access: 'admin',
    audit: ['user.invited', 'invitation.revoked'],
    summary: 'Invite a user',
    params: Type.Object(InWorkspace),
    body: Type.Object({ email: Email, role: Role }, STRICT),
    response: {
      status: 201,
      schema: Type.Object({
        ...Invitation.properties,
        link: TextOrNull,
        isLinkLocal: Type.Boolean({
          description: 'Whether the link works on the machine of the server only.',
        }),
      }),
      secret: true,
    },
    faults: ['conflict', 'rate_limited'],
  }),
  operation({
    id: 'invitations.revoke',
    method: 'DELETE',
    path: '/workspaces/{workspace}/invitations/{id}',
    access: 'admin',
    audit: ['invitation.revoked'],
    summary: 'Revoke an invitation',
    params: Type.Object({ ...InWorkspace, id: Id }),
    response: ok({ id: Id, revoked: Type.Literal(true) }),
  }),
  operation({
    id: 'members.set-role',
    method: 'POST',
    path: '/workspaces/{workspace}/members/{id}',
    access: 'admin',
    audit: ['user.made-member', 'user.made-admin', 'user.made-owner'],
    summary: 'Change a role',
    params: Type.Object({ ...InWorkspace, id: Id }),
    body: Type.Object({ role: Role }, STRICT),
    response: { status: 200, schema: Member },
    faults: ['conflict'],
  }),
  operation({
    id: 'members.remove',
    method: 'DELETE',
    path: '/workspaces/{workspace}/members/{id}',
    access: 'admin',
    audit: ['user.removed'],
    summary: 'Remove a member',
    params: Type.Object({ ...InWorkspace, id: Id }),
    response: { status: 200, schema: removed },
    faults: ['conflict'],
  }),
  operation({
    id: 'members.leave',
    method: 'DELETE',
    path: '/workspaces/{workspace}/membership',
    access: 'member',
    audit: ['user.left'],
    summary: 'Leave the workspace',
    params: Type.Object(InWorkspace),
    response: { status: 200, schema: removed },
    faults: ['conflict'],
  }),
] as const
