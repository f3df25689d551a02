// The edge API: verify API keys, follow revocations, claim and report tunnels, report usage.
import Type from 'typebox'
import { inactiveStates } from '../../lib/credentials/key-state.ts'
import { readDescription } from '../description.ts'
import { HostName, Instant, OneOf, Slug, TokenId, WorkspaceName } from '../fields.ts'
import { operation } from '../operation.ts'
import { findHost } from './hosts.ts'
import { UsageQuota } from './quotas.ts'
import { reportUsage } from './reports.ts'
import { EventId, Grant, REPORTED_BY_EDGES } from './tunnel-fields.ts'
import { claimTunnels, syncTunnels } from './tunnels.ts'

const exampleKeyId = 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5'

const Topic = Type.String({
  pattern: '^[0-9A-Za-z_-]{22}$',
  description: 'Names the workspace in the stream of changes. It never changes.',
  examples: ['u8Qz1yT0aVdXk3mWc5eRfg'],
})

const ValidKey = Type.Object(
  {
    valid: Type.Literal(true),
    keyId: TokenId,
    expiresAt: Type.Optional({ ...Instant, description: 'When the key expires; absent if it does not.' }),
    expiresInMs: Type.Optional(
      Type.Integer({
        minimum: 0,
        description:
          'Milliseconds until then by the clock of the control plane. Count them from the start of the ' +
          'request: the clock of the edge may differ.',
      }),
    ),
    grant: Type.Optional(
      Grant(
        'Only if the request asks for it: what this edge needs to open tunnels with the key. Valid for 10 ' +
          'minutes; verify the key again after 5.',
      ),
    ),
    workspace: Type.Object(
      {
        slug: Slug,
        name: WorkspaceName,
        provisioned: Type.Boolean({ description: 'Whether tunnels may be opened for this workspace.' }),
        tunnelBase: HostName({ description: 'Parent host name of the workspace’s tunnels.' }),
        topic: Topic,
        quota: Type.Optional(UsageQuota),
      },
      { title: 'EdgeWorkspace' },
    ),
  },
  { title: 'ValidKey' },
)

const InvalidKey = Type.Object(
  {
    valid: Type.Literal(false),
    reason: OneOf(
      ['unknown', 'archived', ...inactiveStates],
      '`unknown`: there is no such key. `revoked`: it was revoked. `expired`: it has expired. ' +
        '`archived`: its workspace is archived.',
    ),
  },
  { title: 'InvalidKey' },
)

export const verifyKey = operation({
  id: 'keys.verify',
  method: 'POST',
  path: '/keys/verify',
  access: 'edge',
  audit: REPORTED_BY_EDGES,
  summary: 'Verify an API key',
  description:
    'Returns whether an API key is valid, and its workspace. An invalid key is a 200 response with `valid: ' +
    'false`, not an error. Verification updates `lastUsedAt` of the key. A key of ' +
    'a workspace of another group of edges is unknown.',
  body: Type.Object(
    {
      key: Type.String({
        maxLength: 200,
        description: 'The raw API key that was presented to the edge.',
      }),
      grant: Type.Optional(
        Type.Boolean({ description: 'Whether the response of a valid key has a grant to open tunnels.' }),
      ),
      after: Type.Optional(
        EventId(
          'Id of the last event that the edge has received: the response takes all changes up to it into ' +
            'account. 503 if the node cannot read them.',
        ),
      ),
    },
    { title: 'KeyToVerify', examples: [{ key: 'adit_EXAMPLEexampleEXAMPLEexampleEXAMPLEexampleEXAMPLE' }] },
  ),
  response: {
    status: 200,
    description: 'Whether the key is valid.',
    schema: Type.Union([ValidKey, InvalidKey], { title: 'VerifyResult' }),
    example: {
      valid: true,
      keyId: exampleKeyId,
      workspace: {
        slug: 'acme',
        name: 'Acme',
        provisioned: true,
        tunnelBase: 'acme.tunnels.example.com',
        topic: 'u8Qz1yT0aVdXk3mWc5eRfg',
      },
    },
  },
})

const authorizeRequest = operation({
  id: 'requests.authorize',
  method: 'GET',
  path: '/authorize',
  access: 'edge',
  summary: 'Authorize a proxied request',
  description:
    'For reverse proxies with external authorization (nginx `auth_request`, Caddy `forward_auth`, Traefik ' +
    '`ForwardAuth`). Forward the `Authorization: Bearer <API key>` header of the proxied request, and send ' +
    'the credential of the edge in `X-Adit-Edge`. Returns 204 for a valid key, 401 for any other, and 403 ' +
    'if the workspace has used up its quota for this month.',
  response: {
    status: 204,
    description: 'The key is valid; headers name its workspace and id.',
    schema: Type.Object({ 'x-adit-workspace': Slug, 'x-adit-key-id': TokenId }),
    example: { 'x-adit-workspace': 'acme', 'x-adit-key-id': exampleKeyId },
    asHeaders: true,
  },
  faults: ['forbidden'],
})

/** The parameter of an edge that has no locations yet. */
export const NO_LOCATIONS = 'none'

const followKeyChanges = operation({
  id: 'keys.changes',
  method: 'GET',
  path: '/key-changes',
  access: 'edge',
  summary: 'Follow revocations',
  description:
    'A stream of server-sent events. It has the changes of all keys and workspaces, and names none of ' +
    'them: match `hash` with the SHA-256 of the raw keys that you know, in hex, and `topic` with the ' +
    'topics of verification responses. Most events match nothing.\n\n' +
    '- `revoked`: a key was revoked. Its data has `hash`.\n' +
    '- `expiry-changed`: a key expires earlier than it did. Its data has `hash` and `expiresInMs`, the ' +
    'time that is left. Verify the key again before you use a cached result.\n' +
    '- `workspace-archived`: no key of the workspace is valid from now on, until `workspace-restored`. ' +
    'Their data has `topic`. Close its tunnels.\n' +
    '- `quota-changed`: the quota of a workspace, or what is used of it, has changed. Its data has ' +
    '`topic`, and `quota` as in a verification response.\n' +
    '- `reset`: changes were missed and cannot be replayed. Drop all cached keys.\n' +
    '- `tunnels-changed`: a user closed a tunnel of this edge, or changed access rules of one. Sync ' +
    'tunnels now. Its data is empty.\n' +
    '- `closed`: the node closes this stream. Its data has the reason as `message`.\n' +
    '- `peers`, only with the parameter `locations`: other edges of the group that accept connections of ' +
    'edges. Its data has the id of this `edge`, and `peers` with `id`, `address` and the `secrets` that ' +
    'both edges have; connect with the first, and accept each. `removed` has ids. With `reset`, the list ' +
    'begins anew; with `more`, another event continues it.\n' +
    '- `locations`, only with that parameter: `open` and `closed` have pairs of a host and the id of an ' +
    'edge of the group; in `open`, the port of a TCP tunnel follows. With `reset`, the list begins anew, and ' +
    'is complete with the first event that has a `position`. These two events have no `id`.\n\n' +
    'To resume without a gap, send the last `id` in `Last-Event-ID`; missed changes are sent first. ' +
    'Without that header, and after `reset`, up to 1,000 of the latest of these changes are sent first, ' +
    'without ids. Keep revocations, and let them take precedence over verification responses. An event ' +
    'with only an `id` follows once the edge is up to date.\n\n' +
    'A comment is sent at least every 5 seconds, so a longer silence means that the connection is lost. ' +
    'The stream ends when the edge is revoked. A node serves 8 streams per edge, and closes the oldest ' +
    'when another one is opened. Beyond 1,000 streams of all edges it returns 503.',
  headers: Type.Object({
    'last-event-id': Type.Optional(EventId('Id of the last event received.')),
  }),
  query: Type.Object({
    locations: Type.Optional(
      Type.String({
        pattern: '^([0-9]{1,15}-[0-9a-f]{0,16}|none)$',
        description:
          'Asks for `peers` and `locations`: the last `position` of an event `locations`, or `none`.',
        examples: [NO_LOCATIONS],
        'x-rule': 'must be the position of an event of this stream, or `none`',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'The stream of changes.',
    schema: Type.Object({ hash: Type.String({ pattern: '^[0-9a-f]{64}$' }) }),
    example: `id: 42-1f0e2d3c4b5a6978\nevent: revoked\ndata: {"hash":"${'5e'.repeat(32)}"}\n\n`,
    stream: true,
  },
})

export const edgeOperations = [
  verifyKey,
  authorizeRequest,
  followKeyChanges,
  claimTunnels,
  syncTunnels,
  reportUsage,
  findHost,
  readDescription,
] as const
