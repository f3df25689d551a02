// Requests for an API key in the dashboard (variant B): members ask, and admins and owners decide.
import Type from 'typebox'
import { Email, Id, Instant, InstantOrNull, Label, OneOf, ok, TextOrNull, UserName } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { newKey } from './keys.ts'
import { InWorkspace } from './members.ts'

/** `used`: the key was created. */
const State = OneOf(['pending', 'approved', 'declined', 'withdrawn', 'used', 'expired'])

const OnRequest = Type.Object({ ...InWorkspace, id: Id })

const decided = ok({ id: Id, state: State })

export const keyRequestOperations = [
  operation({
    id: 'key-requests.list',
    method: 'GET',
    path: '/workspaces/{workspace}/key-requests',
    access: 'member',
    summary: 'List requests for API keys',
    params: Type.Object(InWorkspace),
    response: ok({
      requests: Type.Array(
        Type.Object({
          id: Id,
          label: Label,
          user: Type.Object({ name: UserName, email: Email, isYou: Type.Boolean() }),
          state: State,
          createdAt: Instant,
          expiresAt: Instant,
          decidedBy: TextOrNull,
          decidedAt: InstantOrNull(),
        }),
      ),
    }),
  }),
  operation({
    id: 'key-requests.create',
    method: 'POST',
    path: '/workspaces/{workspace}/key-requests',
    access: 'member',
    audit: ['key.requested'],
    summary: 'Request an API key',
    params: Type.Object(InWorkspace),
    body: Type.Object({ label: Type.Optional(Label) }, STRICT),
    response: { status: 201, schema: Type.Object({ id: Id }) },
    faults: ['conflict'],
  }),
  operation({
    id: 'key-requests.approve',
    method: 'POST',
    path: '/workspaces/{workspace}/key-requests/{id}/approve',
    access: 'admin',
    audit: ['key.request-approved'],
    summary: 'Approve a request for an API key',
    params: OnRequest,
    response: decided,
    faults: ['conflict'],
  }),
  operation({
    id: 'key-requests.decline',
    method: 'POST',
    path: '/workspaces/{workspace}/key-requests/{id}/decline',
    access: 'admin',
    audit: ['key.request-declined'],
    summary: 'Decline a request for an API key',
    params: OnRequest,
    response: decided,
    faults: ['conflict'],
  }),
  operation({
    id: 'key-requests.withdraw',
    method: 'DELETE',
    path: '/workspaces/{workspace}/key-requests/{id}',
    access: 'member',
    audit: ['key.request-withdrawn'],
    summary: 'Withdraw a request for an API key',
    params: OnRequest,
    response: ok({ id: Id, withdrawn: Type.Literal(true) }),
    faults: ['conflict'],
  }),
  operation({
    id: 'key-requests.pick-up',
    method: 'POST',
    path: '/workspaces/{workspace}/key-requests/{id}/key',
    access: 'member',
    audit: ['key.created'],
    summary: 'Create the API key of an approved request',
    params: OnRequest,
    response: { status: 201, schema: Type.Object(newKey), secret: true },
    faults: ['conflict'],
  }),
] as const
