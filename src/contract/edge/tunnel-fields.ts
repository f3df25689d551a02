// Fields of open tunnels, as edges claim and report them.

import Type, { type Static } from 'typebox'
import { OneOf, Slug, TokenId, UtcTimestamp } from '../fields.ts'
import { DNS_LABEL_CHARS_MAX } from '../limits.ts'
import { AllowedNetworks } from './access-rules.ts'

/** Reports of edges are not in the audit log: they are facts, not actions, and arrive many times a second. */
export const REPORTED_BY_EDGES = { none: 'Edges report facts; the operator and members act.' } as const

/** Larger integers are rejected, because many JSON parsers round them. */
export const Total = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

export const Gauge = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000, description })

export const TunnelId = Type.String({
  pattern: '^tun_[0-9a-z]{10,40}$',
  description: 'Identifier of the tunnel, chosen by the edge: `tun_` and at least 10 random characters.',
  examples: ['tun_01k9x2m4q7r8s9t0v1w2x3y4z5'],
  'x-rule': 'must be `tun_` and 10 to 40 lower-case letters and digits',
})

/** One label under the tunnel domain of the workspace. */
export const TunnelName = Type.String({
  minLength: 1,
  maxLength: DNS_LABEL_CHARS_MAX,
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  description: 'Name of the tunnel; a DNS label.',
  examples: ['my-app'],
  'x-rule': 'must be lower-case letters, digits and hyphens between them',
})

export const TunnelType = OneOf(['http', 'tcp'])

const TunnelUrl = Type.String({
  maxLength: 300,
  pattern: '^(https?|tcp)://[a-z0-9.-]{1,253}(:[0-9]{1,5})?/?$',
  description:
    'Public address of the tunnel. Its scheme and port are shown; the host is always ' +
    '`<name>.<workspace>.<tunnel domain>`.',
  examples: ['https://my-app.acme.tunnels.example.com'],
  'x-rule': 'must be a URL such as https://my-app.acme.tunnels.example.com',
})

/** Id of an event in the stream of changes: a position in the change log. */
export const EventId = (description: string) =>
  Type.String({
    pattern: '^[0-9]{1,15}(-[0-9a-f]{0,16})?$',
    description,
    examples: ['41-9c3e5d0f7a1b2846'],
    'x-rule': 'must be the id of an event of the stream of changes',
  })

/** A grant consists of a key id, a time and a signature. */
export const Grant = (description: string) =>
  Type.String({
    pattern: '^[0-9A-Za-z_-]{1,100}\\.[0-9a-z]{1,11}\\.[0-9A-Za-z_-]{43}$',
    description,
    examples: [`tok_01k9x2m4q7r8s9t0v1w2x3y4z5.mi0aq3k0.${'a'.repeat(43)}`],
    'x-rule': 'must be a grant of a verification response',
  })

export const SecretHash = (description: string) =>
  Type.String({ pattern: '^[0-9a-f]{64}$', description, 'x-rule': 'must be a SHA-256 in hex' })

/** User and password are left out: the dashboard shows only that there is a password. */
export const ClientAccess = Type.Object(
  {
    basicAuth: Type.Boolean({ description: 'Whether requests need a user and a password.' }),
    allowIp: AllowedNetworks,
  },
  { description: 'Access rules that the tunnel client asked for, in addition to those of the name.' },
)
export type ClientAccess = Static<typeof ClientAccess>

const tunnelFields = {
  id: TunnelId,
  workspace: Slug,
  name: TunnelName,
  type: TunnelType,
  pool: Type.Boolean({ description: 'Whether it shares the name with open tunnels of the same type.' }),
  url: TunnelUrl,
  keyId: TokenId,
  clientAddress: Type.String({
    pattern: '^[0-9a-f:.]{2,45}$',
    description: 'IP address of the tunnel client.',
    examples: ['192.0.2.7'],
    'x-rule': 'must be an IP address',
  }),
  clientVersion: Type.Optional(
    Type.String({
      pattern: '^[\\x20-\\x7e]{0,100}$',
      description: 'Name and version of the tunnel client.',
      examples: ['adit/0.1.0'],
      'x-rule': 'must be at most 100 printable ASCII characters',
    }),
  ),
  openedAt: UtcTimestamp({ description: 'When the tunnel was opened.' }),
  access: Type.Optional(ClientAccess),
  resume: Type.Optional(
    SecretHash(
      'SHA-256 of a secret of the connection, in hex: a connection that moves to another edge has the same.',
    ),
  ),
  session: Type.Optional(
    SecretHash(
      'SHA-256 of a secret of the tunnel client, in hex: its connections to several edges have the same, and ' +
        'are one tunnel. If it is missing, `resume` is used.',
    ),
  ),
}

export const ClaimedTunnel = Type.Object(tunnelFields, { title: 'ClaimedTunnel' })
export type ClaimedTunnel = Static<typeof ClaimedTunnel>

export const ReportedTunnel = Type.Object(
  {
    ...tunnelFields,
    requests: Total('Requests so far.'),
    bytesIn: Total('Bytes received so far.'),
    bytesOut: Total('Bytes sent so far.'),
    streams: Gauge('Requests and connections in progress.'),
    isClaiming: Type.Optional(
      Type.Boolean({
        description:
          'Whether its claim has no response yet. Then the claim decides whether it may be opened.',
      }),
    ),
  },
  { title: 'ReportedTunnel' },
)
export type ReportedTunnel = Static<typeof ReportedTunnel>
