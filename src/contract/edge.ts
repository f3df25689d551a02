// The edges' side: is this key good and whose is it; here is what was used.
import Type from 'typebox'
import { type InactiveState, inactiveStates } from '../credentials/key-state.ts'
import { readDescription } from './description.ts'
import { HostName, Slug, TokenId, WorkspaceName } from './fields.ts'
import { operation } from './operation.ts'
import { reportUsage } from './reports.ts'

export const EDGE_PREFIX = '/edge/v1'

const exampleKeyId = 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5'

const GoodKey = Type.Object(
  {
    valid: Type.Literal(true),
    keyId: TokenId,
    workspace: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
        tunnelBase: HostName({ description: 'Host name under which the workspace’s tunnels live.' }),
      },
      { title: 'EdgeWorkspace' },
    ),
  },
  { title: 'GoodKey' },
)

const BadKey = Type.Object(
  {
    valid: Type.Literal(false),
    reason: Type.Unsafe<'unknown' | InactiveState>({
      type: 'string',
      enum: ['unknown', ...inactiveStates],
      description: 'Whether it never was a key here, or is one no more.',
    }),
  },
  { title: 'BadKey' },
)

export const verifyKey = operation({
  id: 'keys.verify',
  method: 'POST',
  path: '/keys/verify',
  access: 'edge',
  summary: 'Verify an API key',
  description:
    'Tells whether a key is good and whose it is. A key that is not good is an answer, not an error. Asking counts as ' +
    'a use of the key.',
  body: Type.Object(
    {
      key: Type.String({
        maxLength: 200,
        description: 'The raw API key that somebody presented to the edge.',
      }),
    },
    { title: 'KeyToVerify', examples: [{ key: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE' }] },
  ),
  response: {
    status: 200,
    description: 'What the key is.',
    schema: Type.Union([GoodKey, BadKey], { title: 'KeyVerdict' }),
    example: {
      valid: true,
      keyId: exampleKeyId,
      workspace: { slug: 'acme', name: 'Acme', provisioned: true, tunnelBase: 'acme.tunnels.example.com' },
    },
  },
  faults: [],
})

export const authorizeVisitor = operation({
  id: 'visitors.authorize',
  method: 'GET',
  path: '/authorize',
  access: 'edge',
  summary: 'Authorise a visitor',
  description:
    'For reverse proxies that ask before they forward (nginx `auth_request`, Caddy `forward_auth`, Traefik). The ' +
    'visitor’s own `Authorization: Bearer <API key>` is passed on, and the edge’s credential comes in `X-Adit-Edge`. ' +
    'A good key is 204, anything else 401.',
  response: {
    status: 204,
    description: 'The key is good; the headers tell whose it is.',
    schema: Type.Object({ 'x-adit-workspace': Slug, 'x-adit-key-id': TokenId }),
    example: { 'x-adit-workspace': 'acme', 'x-adit-key-id': exampleKeyId },
    asHeaders: true,
  },
  faults: [],
})

export const followKeyChanges = operation({
  id: 'keys.changes',
  method: 'GET',
  path: '/key-changes',
  access: 'edge',
  summary: 'Follow revocations',
  description:
    'A stream of server-sent events. `revoked` tells that a key is good no more: its data holds `keyId` and `hash`, the ' +
    'SHA-256 of the raw key in hex. Send the last `id` back in `Last-Event-ID` to go on without a gap: ' +
    'what was missed comes first. `reset` says that changes were missed for good: forget every key you remember. ' +
    'Without that header, and after `reset`, the latest revocations, up to a thousand, come first, without ids; keep them, and ' +
    'let no answer to a verification outweigh them. An `id` alone follows: now everything was heard. A comment comes at ' +
    'least every 5 seconds, so that silence means loss. The stream ends when the edge itself is revoked. ' +
    'A node keeps at most 8 streams for an edge: a further one closes the oldest, which is sent `closed`, with the ' +
    'reason as `message` in its data. Beyond 1,000 streams of all edges a node answers 503.',
  headers: Type.Object({
    'last-event-id': Type.Optional(
      Type.String({
        pattern: '^[0-9]{1,15}(-[0-9a-f]{0,16})?$',
        description: 'The id of the last event that the edge has seen.',
        examples: ['41-9c3e5d0f7a1b2846'],
        'x-rule': 'must be the id of an event of this stream',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'The changes, as they happen.',
    schema: Type.Object({ keyId: TokenId, hash: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
    example: `id: 42-1f0e2d3c4b5a6978\nevent: revoked\ndata: {"keyId":"${exampleKeyId}","hash":"${'5e'.repeat(32)}"}\n\n`,
    stream: true,
  },
  faults: [],
})

export const edgeOperations = [
  verifyKey,
  authorizeVisitor,
  followKeyChanges,
  reportUsage,
  readDescription,
] as const
