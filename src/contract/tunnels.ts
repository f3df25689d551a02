// Open tunnels: edges claim a name before they open a tunnel, and report what is open.
import Type, { type Static } from 'typebox'
import { AccessRulesOrNull, AllowedNetworks } from './access-rules.ts'
import { Slug, TokenId, UtcTimestamp } from './fields.ts'
import { operation } from './operation.ts'

/** Maximum number of items in each list of a sync. */
export const SYNC_ITEMS_MAX = 1_000
/** Seconds between two syncs of an edge. */
export const SYNC_INTERVAL_S = 5
/** Seconds after its last sync until the tunnels of an edge count as closed. */
export const TUNNEL_LEASE_S = 30

/** The largest integer that every JSON parser reads exactly. */
const Total = (description: string) =>
  Type.Integer({ minimum: 0, maximum: Number.MAX_SAFE_INTEGER, description })

const Gauge = (description: string) => Type.Integer({ minimum: 0, maximum: 1_000_000, description })

export const TunnelId = Type.String({
  pattern: '^tun_[0-9a-z]{10,40}$',
  description: 'Identifier of the tunnel, chosen by the edge: `tun_` and at least 10 random characters.',
  examples: ['tun_01k9x2m4q7r8s9t0v1w2x3y4z5'],
  'x-rule': 'must be `tun_` and 10 to 40 lower-case letters and digits',
})

/** One label under the tunnel domain of the workspace. */
export const TunnelName = Type.String({
  minLength: 1,
  maxLength: 63,
  pattern: '^[a-z0-9]([a-z0-9-]*[a-z0-9])?$',
  description: 'Name of the tunnel; a DNS label.',
  examples: ['my-app'],
  'x-rule': 'must be lower-case letters, digits and inner hyphens',
})

export const TunnelType = Type.Unsafe<'http' | 'tcp'>({ type: 'string', enum: ['http', 'tcp'] })

const TunnelUrl = Type.String({
  maxLength: 300,
  pattern: '^(https?|tcp)://[a-z0-9.-]{1,253}(:[0-9]{1,5})?/?$',
  description:
    'Public address of the tunnel. Its scheme and port are shown; the host is always ' +
    '`<name>.<workspace>.<tunnel domain>`.',
  examples: ['https://my-app.acme.tunnels.example.com'],
  'x-rule': 'must be a URL such as https://my-app.acme.tunnels.example.com',
})

const Session = Type.String({
  pattern: '^[0-9a-z]{9}-[0-9a-z]{8,32}$',
  description:
    'Identifies this run of the edge: milliseconds since 1970 at its start in base 36 with 9 digits, a hyphen ' +
    'and random characters. A session replaces those that sort before it.',
  examples: ['mhz0k3a1b-4f7c2a9d'],
  'x-rule': 'must be a time in base 36 with 9 digits, a hyphen and 8 to 32 lower-case letters and digits',
})

const Sequence = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })

const ResumeHash = (description: string) =>
  Type.String({ pattern: '^[0-9a-f]{64}$', description, 'x-rule': 'must be a SHA-256 in hex' })

/** Without user and password: the dashboard shows only that there is one. */
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
    ResumeHash(
      'SHA-256 of a secret of the tunnel client, in hex: a client that moves to another edge has the same.',
    ),
  ),
}

const ClaimedTunnel = Type.Object(tunnelFields, { title: 'ClaimedTunnel' })
export type ClaimedTunnel = Static<typeof ClaimedTunnel>

const ReportedTunnel = Type.Object(
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

/** Why a tunnel may not be open. */
const refusals = [
  'name_taken',
  'unknown_workspace',
  'not_provisioned',
  'invalid_key',
  'limit_reached',
] as const
export type Refusal = (typeof refusals)[number]

const claimRefusals = [...refusals, 'closed', 'replaced', 'outdated'] as const
export type ClaimRefusal = (typeof claimRefusals)[number]

const refusalTexts =
  '`name_taken`: another edge has the name. `unknown_workspace`: no such workspace. `not_provisioned`: the ' +
  'workspace may not open tunnels. `invalid_key`: the workspace has no such active key. `limit_reached`: the ' +
  'edge has too many tunnels of the workspace. '

const message = Type.String({ description: 'Explanation for the user of the tunnel client.' })

const exampleTunnel = {
  id: 'tun_01k9x2m4q7r8s9t0v1w2x3y4z5',
  workspace: 'acme',
  name: 'my-app',
  type: 'http' as const,
  pool: false,
  url: 'https://my-app.acme.tunnels.example.com',
  keyId: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5',
  clientAddress: '192.0.2.7',
  clientVersion: 'adit/0.1.0',
  openedAt: '2026-11-15T10:02:11.000Z',
}
const exampleSession = 'mhz0k3a1b-4f7c2a9d'

export const claimTunnel = operation({
  id: 'tunnels.claim',
  method: 'POST',
  path: '/tunnels/claim',
  access: 'edge',
  summary: 'Claim the name of a tunnel',
  description:
    'Call it before a tunnel is opened. A name belongs to one edge, unless a later tunnel of the same type ' +
    'joins as `pool`, or has the same `resume`: then its client has moved, and the other edge closes its ' +
    'tunnel. The edge itself decides about several clients of one name. A refusal is a 200 response with ' +
    '`granted: false`. 503 if the edge has not synced for 30 seconds: sync first.\n\n' +
    'The claim holds while the edge syncs, until it reports the tunnel as closed. `sequence` is that of the ' +
    'next sync. From then on the tunnel is part of syncs: as changed, or as closed if the claim was refused ' +
    'or had no response. A claim that arrives after such a sync cannot bring the tunnel back.',
  body: Type.Object(
    {
      session: Session,
      sequence: Sequence(1, 'The sequence of the next sync of this session.'),
      tunnel: ClaimedTunnel,
    },
    { title: 'TunnelClaim', examples: [{ session: exampleSession, sequence: 42, tunnel: exampleTunnel }] },
  ),
  response: {
    status: 200,
    description: 'Whether the tunnel may be opened.',
    schema: Type.Union(
      [
        Type.Object({ granted: Type.Literal(true), access: AccessRulesOrNull }, { title: 'GrantedClaim' }),
        Type.Object(
          {
            granted: Type.Literal(false),
            reason: Type.Unsafe<ClaimRefusal>({
              type: 'string',
              enum: [...claimRefusals],
              description:
                refusalTexts +
                '`closed`: a user closed the tunnel of the client with this `resume`. `replaced`: a newer ' +
                'session of this edge exists. `outdated`: a later sync did not have the tunnel. Later ' +
                'versions may add reasons.',
            }),
            message,
          },
          { title: 'RefusedClaim' },
        ),
      ],
      { title: 'ClaimResult' },
    ),
    example: { granted: true, access: null },
  },
  faults: [],
})

const closeReasons = ['requested', 'moved', ...refusals] as const
export type TunnelCloseReason = (typeof closeReasons)[number]

export const syncTunnels = operation({
  id: 'tunnels.sync',
  method: 'POST',
  path: '/tunnels/sync',
  access: 'edge',
  summary: 'Report open tunnels',
  description:
    'Reports what has changed since the last sync that had a response, and renews the lease of the edge: 30 ' +
    'seconds after its last sync, its tunnels count as closed and their names are free. Send one sync at a ' +
    'time, every 5 seconds and at once after the event `tunnels-changed`, each with the next `sequence`. ' +
    '`previous` is the sequence of the last sync that had a response; `changed` and `closed` have everything ' +
    'since that one. So a sync may be lost, repeated or delayed.\n\n' +
    'A sync with `previous` 0 replaces everything that the edge has reported. If more than 1,000 tunnels are ' +
    'open, the others follow in the next syncs, see `snapshot`. Start with it, and send it again when the response has ' +
    '`resync`: then the server does not know what `previous` refers to, or the lease has expired.\n\n' +
    'Close the tunnels in `close`, and report them as closed. Apply the access rules in `names` to open ' +
    'tunnels too. Both are repeated until a later sync has confirmed the response by its `previous`.',
  body: Type.Object(
    {
      session: Session,
      sequence: Sequence(1, 'Sequence of this sync, from 1.'),
      previous: Sequence(0, 'Sequence of the last sync that had a response; 0: replace everything.'),
      version: Type.String({
        pattern: '^[\\x20-\\x7e]{0,100}$',
        description: 'Name and version of the edge.',
        examples: ['adit/0.1.0'],
        'x-rule': 'must be at most 100 printable ASCII characters',
      }),
      startedAt: UtcTimestamp({ description: 'When the edge was started.' }),
      load: Type.Object({
        tunnels: Gauge('Open tunnels.'),
        streams: Gauge('Requests and connections in progress.'),
      }),
      changed: Type.Array(ReportedTunnel, {
        maxItems: SYNC_ITEMS_MAX,
        description: 'Tunnels that were opened or whose numbers have changed, each once.',
      }),
      closed: Type.Array(TunnelId, { maxItems: SYNC_ITEMS_MAX, description: 'Tunnels that were closed.' }),
      snapshot: Type.Optional(
        Type.Object(
          {
            first: Sequence(1, 'Sequence of the first sync of the snapshot, whose `previous` is 0.'),
            isLast: Type.Boolean({
              description: 'Whether all open tunnels have been reported since `first`.',
            }),
          },
          {
            description:
              'For a snapshot of more than 1,000 tunnels, in each of its syncs: with the last one, tunnels that ' +
              'none of them reported are closed.',
          },
        ),
      ),
    },
    {
      title: 'TunnelSync',
      examples: [
        {
          session: exampleSession,
          sequence: 42,
          previous: 41,
          version: 'adit/0.1.0',
          startedAt: '2026-11-15T08:00:00.000Z',
          load: { tunnels: 1, streams: 2 },
          changed: [{ ...exampleTunnel, requests: 12, bytesIn: 3400, bytesOut: 91000, streams: 2 }],
          closed: [],
        },
      ],
    },
  ),
  bodyBytesMax: 4 * 1024 * 1024,
  response: {
    status: 200,
    description: 'The sync is applied, or ignored because a later one was.',
    schema: Type.Object(
      {
        resync: Type.Boolean({ description: 'Continue with a sync that has `previous` 0.' }),
        replaced: Type.Boolean({
          description:
            'A newer session of this edge exists, and this one is ignored. Processes need a credential each.',
        }),
        nextSyncInS: Type.Integer({ minimum: 1, maximum: 10, description: 'When the next sync is wanted.' }),
        close: Type.Array(
          Type.Object(
            {
              id: TunnelId,
              reason: Type.Unsafe<TunnelCloseReason>({
                type: 'string',
                enum: [...closeReasons],
                description:
                  '`requested`: a user closed it. `moved`: its client is at another edge now. The others are as for claims: the name was taken while the ' +
                  'edge was away, for example. Later versions may add reasons.',
              }),
              message,
              resume: Type.Optional(
                ResumeHash(
                  'Only if a user closed it: the `resume` of its client, which must not open it again. It may have ' +
                    'done so already, under another id.',
                ),
              ),
            },
            { title: 'TunnelToClose' },
          ),
          { description: 'Tunnels to close.' },
        ),
        names: Type.Array(
          Type.Object(
            { workspace: Slug, name: TunnelName, access: AccessRulesOrNull },
            { title: 'NameRules' },
          ),
          { description: 'Names whose access rules have changed.' },
        ),
      },
      { title: 'SyncResult' },
    ),
    example: {
      resync: false,
      replaced: false,
      nextSyncInS: 5,
      close: [
        {
          id: exampleTunnel.id,
          reason: 'requested',
          message: 'Ann Example closed this tunnel in the dashboard.',
        },
      ],
      names: [],
    },
  },
  faults: [],
})

export type SyncRequest = Static<(typeof syncTunnels)['body']>
export type SyncResult = Static<(typeof syncTunnels)['response']['schema']>
export type TunnelClaim = Static<(typeof claimTunnel)['body']>
export type ClaimResult = Static<(typeof claimTunnel)['response']['schema']>
