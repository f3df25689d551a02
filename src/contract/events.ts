// The events that webhooks deliver, as values: type, data and example of each. The `webhooks` section of the
// OpenAPI document and the types of `recordEvent` derive from it.
import Type, { type Static, type TObject } from 'typebox'
import type { Changes as ChangedFields } from './dashboard/audit.ts'
import { Role } from './dashboard/members.ts'
import { QuotaKind } from './dashboard/notices.ts'
import { Email, Instant, InstantOrNull, Label, Slug, TokenId, UserName } from './fields.ts'

const Actor = Type.Object(
  {
    kind: Type.Union([Type.Literal('user'), Type.Literal('key'), Type.Literal('operator')]),
    id: Type.String({ description: 'Id of the user or API key, or name of the operator.' }),
    name: Type.Unsafe<string | null>({ type: ['string', 'null'], description: 'Name of the user.' }),
  },
  { title: 'EventActor', description: 'Who made the change.' },
)

const Key = Type.Object(
  {
    id: TokenId,
    label: Label,
    createdAt: Instant,
    expiresAt: InstantOrNull('When the key expires; null if it does not.'),
  },
  { title: 'EventKey' },
)

const Member = Type.Object(
  { id: Type.String(), name: UserName, email: Email, role: Role },
  { title: 'EventMember' },
)

const Changes = Type.Unsafe<ChangedFields>({
  type: 'object',
  additionalProperties: { type: 'array', minItems: 2, maxItems: 2, items: {} },
  description: 'The fields that have changed, with their values before and after.',
})

const Tunnel = Type.Object(
  {
    id: Type.String(),
    name: Type.String({ description: 'First label of its host name.' }),
    type: Type.Union([Type.Literal('http'), Type.Literal('tcp')]),
    url: Type.String(),
    keyId: TokenId,
    edgeId: Type.String(),
    clientAddress: Type.String({ description: 'IP address of the tunnel client.' }),
    openedAt: Instant,
  },
  { title: 'EventTunnel' },
)

const Quota = Type.Object(
  {
    quota: QuotaKind,
    limit: Type.Integer(),
    renewsAt: InstantOrNull('When the quota is renewed; null if it is not monthly.'),
  },
  { title: 'EventQuota' },
)

interface EventDefinition {
  readonly summary: string
  readonly data: TObject
  readonly example: unknown
}

const at = '2026-11-15T10:02:11.000Z'
const actor = { kind: 'user', id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'Ann Example' }
const key = { id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z5', label: 'ci', createdAt: at, expiresAt: null }
const member = {
  id: 'usr_01k9x2m4q7r8s9t0v1w2x3y4z6',
  name: 'Bo Example',
  email: 'bo@example.com',
  role: 'member',
}
const tunnel = {
  id: 'k3v9',
  name: 'my-app',
  type: 'http',
  url: 'https://my-app.acme.tunnels.example.com',
  keyId: key.id,
  edgeId: 'edge_01k9x2m4q7r8s9t0v1w2x3y4z5',
  clientAddress: '192.0.2.7',
  openedAt: at,
}

export const events = {
  'key.created': {
    summary: 'An API key was created',
    data: Type.Object({ key: Key, actor: Actor }),
    example: { key, actor },
  },
  'key.rotated': {
    summary: 'An API key was rotated; `key.created` was sent for its successor',
    data: Type.Object({ key: Key, successor: Key, actor: Actor }),
    example: { key, successor: { ...key, id: 'tok_01k9x2m4q7r8s9t0v1w2x3y4z6' }, actor },
  },
  'key.revoked': {
    summary: 'An API key was revoked',
    data: Type.Object({ key: Key, actor: Actor }),
    example: { key, actor },
  },
  'key.expired': {
    summary: 'An API key has expired; sent within minutes',
    data: Type.Object({ key: Key }),
    example: { key: { ...key, expiresAt: '2026-11-22T10:02:11.000Z' } },
  },
  'member.invited': {
    summary: 'A user was invited to the workspace',
    data: Type.Object({
      invitation: Type.Object({ id: Type.String(), email: Email, role: Role, expiresAt: Instant }),
      actor: Actor,
    }),
    example: {
      invitation: {
        id: 'lnk_01k9x2m4q7r8s9t0v1w2x3y4z5',
        email: 'bo@example.com',
        role: 'member',
        expiresAt: at,
      },
      actor,
    },
  },
  'member.joined': {
    summary: 'A user joined the workspace',
    data: Type.Object({ member: Member }),
    example: { member },
  },
  'member.updated': {
    summary: 'The role of a member has changed',
    data: Type.Object({ member: Member, previousRole: Role, actor: Actor }),
    example: { member: { ...member, role: 'admin' }, previousRole: 'member', actor },
  },
  'member.removed': {
    summary: 'A member was removed, or has left',
    data: Type.Object({ member: Member, actor: Actor }),
    example: { member, actor },
  },
  'workspace.updated': {
    summary: 'The workspace was renamed, provisioned, archived or restored, or its policy has changed',
    data: Type.Object({ changes: Changes, actor: Actor }),
    example: { changes: { name: ['Acme', 'Acme Inc.'] }, actor },
  },
  'key.expiring': {
    summary: 'An API key expires within 7 days, or within a day',
    data: Type.Object({ key: Key }),
    example: { key: { ...key, expiresAt: '2026-11-22T10:02:11.000Z' } },
  },
  'key.rejected': {
    summary: 'High traffic from an inactive API key',
    data: Type.Object({
      key: Type.Object({ id: TokenId, label: Label }),
      attempts: Type.Integer({ description: 'Rejected uses in one hour so far.' }),
    }),
    example: { key: { id: key.id, label: key.label }, attempts: 100 },
  },
  'edge.silent': {
    summary: 'An edge with tunnels of the workspace has not reported for 5 minutes',
    data: Type.Object({
      edge: Type.Object({ id: Type.String(), name: Type.String() }),
      lastReportAt: Instant,
      tunnels: Type.Integer({ description: 'Tunnels of the workspace that were open there.' }),
    }),
    example: {
      edge: { id: 'edge_01k9x2m4q7r8s9t0v1w2x3y4z5', name: 'fra-1' },
      lastReportAt: at,
      tunnels: 3,
    },
  },
  'quota.near': {
    summary: 'The workspace has used 80 % of a quota',
    data: Quota,
    example: { quota: 'bytes', limit: 1_000_000_000, renewsAt: '2026-12-01T00:00:00.000Z' },
  },
  'quota.reached': {
    summary: 'The workspace has reached a quota',
    data: Quota,
    example: { quota: 'bytes', limit: 1_000_000_000, renewsAt: '2026-12-01T00:00:00.000Z' },
  },
  'tunnel.opened': {
    summary: 'A tunnel client has connected',
    data: Type.Object({ tunnel: Tunnel }),
    example: { tunnel },
  },
  'tunnel.closed': {
    summary: 'A tunnel is closed, or its edge does not report it any more',
    data: Type.Object({ tunnel: Tunnel }),
    example: { tunnel },
  },
  'tunnel.limited': {
    summary: 'An edge opens and closes tunnels so often that their events are not sent until the hour ends',
    data: Type.Object({ edgeId: Type.String(), until: Instant }),
    example: { edgeId: tunnel.edgeId, until: '2026-11-15T11:00:00.000Z' },
  },
  'webhook.test': {
    summary: 'An owner sent a test event to one endpoint, which gets it whatever it subscribes to',
    data: Type.Object({ actor: Actor }),
    example: { actor },
  },
} as const satisfies Record<string, EventDefinition>

export type EventType = keyof typeof events
export type EventData<T extends EventType> = Static<(typeof events)[T]['data']>

export const eventTypes = Object.keys(events) as EventType[]

/** The body of a delivery, as Standard Webhooks recommends it. */
export const eventBody = (type: EventType) =>
  Type.Object({
    type: Type.Literal(type),
    timestamp: Instant,
    workspace: Slug,
    data: events[type].data,
  })
