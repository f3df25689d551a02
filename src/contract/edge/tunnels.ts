// Open tunnels: edges claim a name before they open a tunnel, and report what is open.
import Type, { type Static } from 'typebox'
import { EdgeUrl, OneOf, Slug, UtcTimestamp } from '../fields.ts'
import { operation } from '../operation.ts'
import { AccessRulesOrNull } from './access-rules.ts'
import {
  ClaimedTunnel,
  EventId,
  Gauge,
  Grant,
  REPORTED_BY_EDGES,
  ReportedTunnel,
  SecretHash,
  TunnelId,
  TunnelName,
} from './tunnel-fields.ts'

/** Maximum number of tunnels in a claim. */
const CLAIM_ITEMS_MAX = 250
/** Maximum number of items in each list of a sync. */
export const SYNC_ITEMS_MAX = 1_000
/** Seconds between two syncs of an edge. */
export const SYNC_INTERVAL_S = 5
/** Open tunnels of a workspace at one edge. */
export const TUNNELS_PER_EDGE_MAX = 1_000
/** Seconds after its last sync until the tunnels of an edge count as closed. */
export const TUNNEL_LEASE_S = 30
/**
 * Seconds after its last sync until an edge stops carrying traffic, which is how long a revocation waits for
 * an edge that is gone. Less than the 30 seconds after which many proxies give up on a response.
 */
export const TRAFFIC_LEASE_S = 25

const Session = Type.String({
  pattern: '^[0-9a-z]{9}-[0-9a-z]{8,32}$',
  description:
    'Identifies this run of the edge: milliseconds since 1970 at its start in base 36 with 9 digits, a ' +
    'hyphen and random characters. A session replaces those that sort before it.',
  examples: ['mhz0k3a1b-4f7c2a9d'],
  'x-rule': 'must be a time in base 36 with 9 digits, a hyphen and 8 to 32 lower-case letters and digits',
})

const Sequence = (minimum: number, description: string) =>
  Type.Integer({ minimum, maximum: Number.MAX_SAFE_INTEGER, description })

/** Why a tunnel may not be open. */
const rejectionReasons = [
  'name_taken',
  'not_provisioned',
  'invalid_key',
  'limit_reached',
  'tcp_disabled',
  'no_port',
] as const
export type RejectionReason = (typeof rejectionReasons)[number]

const claimRejectionReasons = [
  ...rejectionReasons,
  'closed',
  'replaced',
  'outdated',
  'grant_required',
] as const
export type ClaimRejectionReason = (typeof claimRejectionReasons)[number]

const rejectionTexts =
  '`name_taken`: another edge has the name. `not_provisioned`: the workspace may not open tunnels. ' +
  '`invalid_key`: the workspace has no such active key. `limit_reached`: the edge has too many tunnels of ' +
  'the workspace, or the workspace has too many ports. `tcp_disabled`: there are no TCP tunnels. ' +
  '`no_port`: no port of TCP tunnels is free, or the name cannot have the one that is open. '

const TcpPort = Type.Integer({
  minimum: 1,
  maximum: 65_535,
  description:
    'The port at which the edge listens for connections of a TCP tunnel. It belongs to the name: if the ' +
    'edge cannot listen there, it must not open the tunnel at another one.',
})

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
const exampleGrant = `${exampleTunnel.keyId}.mi0aq3k0.${'a'.repeat(43)}`

/** One edge counts a name, so that reports of several edges can be added. */
const countFields = {
  counts: Type.Optional(
    Type.Boolean({
      description:
        'Whether this edge counts the name as an open tunnel in its reports. One of the edges that have the ' +
        'name does.',
    }),
  ),
  countsFrom: Type.Optional(
    UtcTimestamp({
      description: 'When it starts to count; without it, at once. Another edge has counted until then.',
    }),
  ),
}

const ClaimResult = Type.Union(
  [
    Type.Object(
      {
        granted: Type.Literal(true),
        access: AccessRulesOrNull,
        port: Type.Optional(TcpPort),
        ...countFields,
        edge: Type.Optional(EdgeUrl),
        edges: Type.Optional(
          Type.Array(EdgeUrl, {
            description:
              'Public URLs of up to three other edges, the best first, at which the client can open further ' +
              'connections of its session.',
          }),
        ),
      },
      { title: 'GrantedClaim' },
    ),
    Type.Object(
      {
        granted: Type.Literal(false),
        reason: OneOf(
          claimRejectionReasons,
          rejectionTexts +
            '`closed`: a user closed the tunnel of the client with this `session`. `replaced`: a newer ' +
            'session of this edge exists. `outdated`: a later sync did not have the tunnel. ' +
            '`grant_required`: no grant of its key was sent, or it has expired; verify the key ' +
            'again. Later versions may add reasons.',
        ),
        message,
      },
      { title: 'RejectedClaim' },
    ),
  ],
  { title: 'ClaimResult' },
)
export type ClaimResult = Static<typeof ClaimResult>

export const claimTunnels = operation({
  id: 'tunnels.claim',
  method: 'POST',
  path: '/tunnels/claim',
  access: 'edge',
  audit: REPORTED_BY_EDGES,
  summary: 'Claim the names of tunnels',
  description:
    'Call it before tunnels are opened, with a grant of a verification of each key. A name belongs to one ' +
    'edge, unless a later tunnel of the same type joins as `pool`, or has the same `session`: then it is ' +
    'another connection of the same client, and both are one tunnel. With the same `resume`, the connection ' +
    'has moved, and the other edge closes it. The edge itself decides about several clients of one name. Each tunnel is granted or rejected by itself. The name of a TCP tunnel has a port, which ' +
    'the response assigns; `url` need not have one yet. 503 if the edge has not synced for 30 seconds: ' +
    'sync first.\n\n' +
    'Send one claim at a time, with all tunnels that wait, up to 250: it is one transaction, so many ' +
    'tunnels cost little more than one.\n\n' +
    'The claim holds while the edge syncs, until it reports the tunnel as closed. `sequence` is that of ' +
    'the next sync. After that, the tunnel is part of syncs: as changed, or as closed if the claim was ' +
    'rejected or had no response. A claim that arrives after such a sync cannot bring the tunnel back.',
  body: Type.Object(
    {
      session: Session,
      sequence: Sequence(1, 'The sequence of the next sync of this session.'),
      grants: Type.Array(Grant('Of one key.'), {
        maxItems: CLAIM_ITEMS_MAX,
        description: 'One for each key of the tunnels.',
      }),
      tunnels: Type.Array(ClaimedTunnel, {
        minItems: 1,
        maxItems: CLAIM_ITEMS_MAX,
        description: 'Tunnels with different ids.',
      }),
    },
    {
      title: 'TunnelClaim',
      examples: [{ session: exampleSession, sequence: 42, grants: [exampleGrant], tunnels: [exampleTunnel] }],
    },
  ),
  bodyBytesMax: 4 * 1024 * 1024,
  response: {
    status: 200,
    description: 'Which tunnels may be opened.',
    schema: Type.Object(
      { results: Type.Array(ClaimResult, { description: 'One for each tunnel, in the same order.' }) },
      { title: 'ClaimResults' },
    ),
    example: {
      results: [{ granted: true, access: null, counts: true, edges: ['https://edge-2.tunnels.example.com'] }],
    },
  },
})

export const syncTunnels = operation({
  id: 'tunnels.sync',
  method: 'POST',
  path: '/tunnels/sync',
  access: 'edge',
  audit: REPORTED_BY_EDGES,
  summary: 'Report open tunnels',
  description:
    'Reports what has changed since the last sync that had a response, and renews the lease of the edge: ' +
    '30 seconds after its last sync, its tunnels count as closed and their names are free. Send one sync ' +
    'at a time, every 5 seconds and at once after the event `tunnels-changed`, each with the next ' +
    '`sequence`. `previous` is the sequence of the last sync that had a response; `changed` and `closed` ' +
    'have everything since that one. So a sync may be lost, repeated or delayed.\n\n' +
    'A sync with `previous` 0 replaces everything that the edge has reported. If more than 1,000 tunnels ' +
    'are open, the others follow in the next syncs, see `snapshot`. Start with it, and send it again when ' +
    'the response has `resync`: then the server does not know what `previous` refers to, or the lease has ' +
    'expired.\n\n' +
    'A tunnel that the server does not list yet needs a grant of its key in `grants`. Without one it is ' +
    'not listed, and its id is in `grantRequired`: verify the key again, and report the tunnel with the ' +
    'grant in the next sync. Tunnels that were claimed, or reported before, need none.\n\n' +
    'Close the tunnels in `close`, and report them as closed. Apply the access rules in `names` to open ' +
    'tunnels too, and count these names from then on, or no longer, as `counts` says. Both are repeated until a later sync has confirmed the response by its `previous`.',
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
      peerAddress: Type.Optional(
        Type.String({
          maxLength: 260,
          pattern: '^[0-9a-z.:\\[\\]-]+:[0-9]{1,5}$',
          description:
            'Host and port at which this edge accepts connections of other edges of its group. While its ' +
            'lease is valid, they get it with the event `peers`.',
          examples: ['10.0.0.7:8446'],
          'x-rule': 'must be a host in lower case and a port such as 10.0.0.7:8446',
        }),
      ),
      applied: Type.Optional(
        EventId(
          'Id of the last change that the edge has applied, see `GET /edge/v1/key-changes`; `0` before the ' +
            'first. An edge that sends it promises to keep the `lease` of the response, and revocations wait ' +
            'for it. Leave it out if the edge does not, and in its last sync, when it carries no traffic.',
        ),
      ),
      load: Type.Object({
        tunnels: Gauge('Open tunnels.'),
        streams: Gauge('Requests and connections in progress.'),
      }),
      changed: Type.Array(ReportedTunnel, {
        maxItems: SYNC_ITEMS_MAX,
        description: 'Tunnels that were opened or whose numbers have changed, each once.',
      }),
      closed: Type.Array(TunnelId, { maxItems: SYNC_ITEMS_MAX, description: 'Tunnels that were closed.' }),
      grants: Type.Optional(
        Type.Array(Grant('Of one key.'), {
          maxItems: SYNC_ITEMS_MAX,
          description: 'For tunnels in `changed` that the server does not list: one for each key.',
        }),
      ),
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
              'For a snapshot of more than 1,000 tunnels, in each of its syncs: with the last one, tunnels ' +
              'that none of them reported are closed.',
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
          applied: '41-9c3e5d0f7a1b2846',
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
        lease: Type.Union(
          [
            Type.Object(
              {
                seconds: Type.Union([Type.Integer({ minimum: 1 }), Type.Null()], {
                  description: 'Null if edges may carry traffic however long the server is unreachable.',
                }),
                after: EventId('Id of the last change of the log when the sync was applied.'),
              },
              { title: 'Lease' },
            ),
            Type.Null(),
          ],
          {
            description:
              'The edge may carry traffic for `seconds`, counted from before it sent the sync, once it has ' +
              'applied the change `after`. Then it must stop until another sync renews the lease. Null if ' +
              'this sync did not renew it.',
          },
        ),
        close: Type.Array(
          Type.Object(
            {
              id: TunnelId,
              reason: OneOf(
                ['requested', 'moved', ...rejectionReasons],
                '`requested`: a user closed it. `moved`: its client is at another edge now. The others are as for claims: the name was taken while the ' +
                  'edge was away, for example. Later versions may add reasons.',
              ),
              message,
              session: Type.Optional(
                SecretHash(
                  'Only if a user closed it: the `session` of its client, or its `resume` if it has none. The ' +
                    'client must not open it again. It may have done so already, under another id.',
                ),
              ),
            },
            { title: 'TunnelToClose' },
          ),
          { description: 'Tunnels to close.' },
        ),
        grantRequired: Type.Array(TunnelId, {
          description: 'Reported tunnels that are not listed, because no grant of their key was sent.',
        }),
        names: Type.Array(
          Type.Object(
            { workspace: Slug, name: TunnelName, access: AccessRulesOrNull, ...countFields },
            { title: 'NameRules' },
          ),
          { description: 'Names whose access rules have changed, or which this edge counts from now on.' },
        ),
        edges: Type.Optional(
          Type.Array(EdgeUrl, {
            description:
              'Public URLs of up to three other edges, as in the results of claims, for clients that were told ' +
              'of fewer.',
          }),
        ),
      },
      { title: 'SyncResult' },
    ),
    example: {
      resync: false,
      replaced: false,
      nextSyncInS: 5,
      lease: { seconds: TRAFFIC_LEASE_S, after: '42-1f0e2d3c4b5a6978' },
      close: [
        {
          id: exampleTunnel.id,
          reason: 'requested',
          message: 'Ann Example closed this tunnel.',
        },
      ],
      grantRequired: [],
      names: [],
    },
  },
})

export type SyncRequest = Static<(typeof syncTunnels)['body']>
export type SyncResult = Static<(typeof syncTunnels)['response']['schema']>
export type TunnelClaim = Static<(typeof claimTunnels)['body']>
