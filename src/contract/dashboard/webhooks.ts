// Webhook endpoints of a workspace, and the log of deliveries to them.
import Type from 'typebox'
import { type Overlap, overlaps } from '../../lib/credentials/rotation.ts'
import { type EventType, eventTypes } from '../events.ts'
import { Id, Instant, InstantOrNull, Label } from '../fields.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

export const ENDPOINTS_MAX = 10
const URL_CHARS_MAX = 1_000
const DELIVERIES_PER_PAGE_MAX = 100

const Url = Type.String({
  maxLength: URL_CHARS_MAX,
  pattern: '^https?://[^\\s\\p{Cc}\\p{Cs}]+$',
  description:
    'An https URL without user, password or fragment. Requests are sent to public addresses only. With ' +
    '`ADIT_WEBHOOK_PRIVATE_NETWORKS`, also to those networks, by https or http.',
  examples: ['https://hooks.example.com/adit'],
  'x-rule': `must be an https URL of at most ${URL_CHARS_MAX} characters`,
})

const wanted = eventTypes.filter((type) => type !== 'webhook.test')

const Events = Type.Array(Type.Unsafe<EventType>({ type: 'string', enum: wanted }), {
  maxItems: wanted.length,
  description: 'The types of events to send; empty for all, also those of later versions.',
})

const NullableText = (description: string) =>
  Type.Unsafe<string | null>({ type: ['string', 'null'], description })

const Endpoint = Type.Object(
  {
    id: Id,
    url: Url,
    description: Label,
    events: Events,
    createdAt: Instant,
    disabledAt: InstantOrNull('Since when nothing is sent; null if the endpoint is enabled.'),
    disabledReason: NullableText(
      '`owner`; `failing` for 24 hours; `gone` (HTTP 410); or `backlog`: too many deliveries wait.',
    ),
    pending: Type.Integer({ description: 'Deliveries that wait, with the one that fails.' }),
    failingSince: InstantOrNull('When the current series of failures began; null if there is none.'),
    previousSecretUntil: InstantOrNull('Until when deliveries are also signed with the previous secret.'),
  },
  { title: 'WebhookEndpoint' },
)

const exampleEndpoint = {
  id: 'whk_01k9x2m4q7r8s9t0v1w2x3y4z5',
  url: 'https://hooks.example.com/adit',
  description: 'Alerts',
  events: ['key.created', 'key.revoked'],
  createdAt: '2026-11-15T10:02:11.000Z',
  disabledAt: null,
  disabledReason: null,
  pending: 0,
  failingSince: null,
  previousSecretUntil: null,
}

const Secret = Type.String({ description: 'Signs deliveries. It is not shown again.' })
const exampleSecret = 'whsec_C2FVsBQIhrscChlQIMV+b5sSYspob7oDPK2bYzZ2GqI='

const list = operation({
  id: 'webhooks.list',
  method: 'GET',
  path: '/workspaces/{workspace}/webhooks',
  access: 'owner',
  summary: 'List webhook endpoints',
  description: `Returns all of them: at most ${ENDPOINTS_MAX}.`,
  params: Type.Object(InWorkspace),
  response: {
    status: 200,
    description: 'The endpoints, and whether they may use http.',
    schema: Type.Object(
      {
        endpoints: Type.Array(Endpoint),
        allowsHttp: Type.Boolean({ description: 'Whether private networks are configured.' }),
      },
      { title: 'WebhookEndpoints' },
    ),
    example: { endpoints: [exampleEndpoint], allowsHttp: false },
  },
  faults: [],
})

const create = operation({
  id: 'webhooks.create',
  method: 'POST',
  path: '/workspaces/{workspace}/webhooks',
  access: 'owner',
  summary: 'Add a webhook endpoint',
  description: 'Events of the workspace are sent to it from now on, by Standard Webhooks.',
  params: Type.Object(InWorkspace),
  body: Type.Object(
    { url: Url, description: Type.Optional(Label), events: Type.Optional(Events) },
    { title: 'NewWebhookEndpoint', ...STRICT },
  ),
  response: {
    status: 201,
    description: 'The endpoint with its secret.',
    schema: Type.Object({ ...Endpoint.properties, secret: Secret }, { title: 'CreatedWebhookEndpoint' }),
    example: { ...exampleEndpoint, secret: exampleSecret },
    secret: true,
  },
  faults: ['conflict'],
})

const OnEndpoint = { ...InWorkspace, id: Id }

const update = operation({
  id: 'webhooks.update',
  method: 'POST',
  path: '/workspaces/{workspace}/webhooks/{id}',
  access: 'owner',
  summary: 'Change, enable or disable a webhook endpoint',
  description:
    'Changes the given fields. A delivery that failed is sent again now if the URL changes or the endpoint is ' +
    'enabled. While it is disabled, events are not recorded for it; those that were waiting stay for 30 days.',
  params: Type.Object(OnEndpoint),
  body: Type.Object(
    {
      url: Type.Optional(Url),
      description: Type.Optional(Label),
      events: Type.Optional(Events),
      enabled: Type.Optional(Type.Boolean()),
    },
    { title: 'WebhookEndpointChange', ...STRICT },
  ),
  response: { status: 200, description: 'The endpoint.', schema: Endpoint, example: exampleEndpoint },
  faults: [],
})

const remove = operation({
  id: 'webhooks.delete',
  method: 'DELETE',
  path: '/workspaces/{workspace}/webhooks/{id}',
  access: 'owner',
  summary: 'Delete a webhook endpoint',
  description:
    'Nothing more is sent to it. Its log of deliveries can no longer be read, and is deleted within 30 days.',
  params: Type.Object(OnEndpoint),
  response: {
    status: 200,
    description: 'It is deleted.',
    schema: Type.Object({ id: Id, deleted: Type.Literal(true) }, { title: 'DeletedWebhookEndpoint' }),
    example: { id: exampleEndpoint.id, deleted: true },
  },
  faults: [],
})

const rotate = operation({
  id: 'webhooks.rotate',
  method: 'POST',
  path: '/workspaces/{workspace}/webhooks/{id}/secret',
  access: 'owner',
  summary: 'Rotate the secret of a webhook endpoint',
  description:
    'Creates another secret. During the overlap each delivery has two signatures, by the new and by the ' +
    'previous secret; earlier ones stop signing.',
  params: Type.Object(OnEndpoint),
  body: Type.Object(
    {
      overlap: Type.Unsafe<Overlap>({
        type: 'string',
        enum: overlaps,
        description: 'How long the previous secret signs too.',
      }),
    },
    { title: 'WebhookSecretRotation', ...STRICT },
  ),
  response: {
    status: 200,
    description: 'The new secret.',
    schema: Type.Object(
      { secret: Secret, previousSecretUntil: InstantOrNull('End of the overlap.') },
      { title: 'RotatedWebhookSecret' },
    ),
    example: { secret: exampleSecret, previousSecretUntil: '2026-11-16T10:02:11.000Z' },
    secret: true,
  },
  faults: [],
})

const Queued = Type.Object(
  { position: Type.Integer({ description: 'Of the delivery in the log.' }) },
  { title: 'QueuedWebhookDelivery' },
)
const queued = {
  status: 200,
  description: 'It is in the queue.',
  schema: Queued,
  example: { position: 42 },
} as const

const sendTest = operation({
  id: 'webhooks.test',
  method: 'POST',
  path: '/workspaces/{workspace}/webhooks/{id}/test',
  access: 'owner',
  summary: 'Send a test event',
  description: 'Adds an event `webhook.test` to the queue of the endpoint.',
  params: Type.Object(OnEndpoint),
  response: queued,
  faults: ['conflict'],
})

const Delivery = {
  position: Type.Integer({ description: 'In the queue of the endpoint.' }),
  eventId: Type.String({ description: 'Sent as `webhook-id`.' }),
  type: Type.String(),
  createdAt: Instant,
  state: Type.Unsafe<'delivered' | 'failing' | 'pending'>({
    type: 'string',
    enum: ['delivered', 'failing', 'pending'],
  }),
  attempts: Type.Integer(),
  attemptedAt: InstantOrNull('When it was sent last.'),
  status: Type.Unsafe<number | null>({
    type: ['integer', 'null'],
    description: 'HTTP status of the response.',
  }),
  durationMs: Type.Unsafe<number | null>({ type: ['integer', 'null'] }),
  error: NullableText('Why there was no response.'),
}

const exampleDelivery = {
  position: 41,
  eventId: 'evt_01k9x2m4q7r8s9t0v1w2x3y4z5',
  type: 'key.created',
  createdAt: '2026-11-15T10:02:11.000Z',
  state: 'delivered',
  attempts: 1,
  attemptedAt: '2026-11-15T10:02:12.000Z',
  status: 204,
  durationMs: 83,
  error: null,
} as const

const listDeliveries = operation({
  id: 'webhooks.deliveries',
  method: 'GET',
  path: '/workspaces/{workspace}/webhooks/{id}/deliveries',
  access: 'owner',
  summary: 'List deliveries to a webhook endpoint',
  description: 'Newest first.',
  params: Type.Object(OnEndpoint),
  query: Type.Object({
    limit: Type.Optional(
      Type.Integer({ minimum: 1, maximum: DELIVERIES_PER_PAGE_MAX, default: 20, description: 'Page size.' }),
    ),
    before: Type.Optional(
      Type.Integer({
        minimum: 1,
        maximum: Number.MAX_SAFE_INTEGER,
        description: 'Only positions before this one.',
      }),
    ),
  }),
  response: {
    status: 200,
    description: 'A page of deliveries.',
    schema: Type.Object(
      {
        deliveries: Type.Array(Type.Object(Delivery, { title: 'WebhookDelivery' })),
        next: Type.Unsafe<number | null>({
          type: ['integer', 'null'],
          description: '`before` of the next page; null on the last one.',
        }),
      },
      { title: 'WebhookDeliveries' },
    ),
    example: { deliveries: [exampleDelivery], next: null },
  },
  faults: [],
})

const OnDelivery = {
  ...OnEndpoint,
  position: Type.String({
    pattern: '^[1-9][0-9]{0,14}$',
    maxLength: 15,
    description: 'Of the delivery.',
    examples: ['41'],
    'x-rule': 'must be a position',
  }),
}

const readDelivery = operation({
  id: 'webhooks.delivery',
  method: 'GET',
  path: '/workspaces/{workspace}/webhooks/{id}/deliveries/{position}',
  access: 'owner',
  summary: 'Get a delivery',
  description: 'With the request, and the response to the last attempt.',
  params: Type.Object(OnDelivery),
  response: {
    status: 200,
    description: 'The delivery.',
    schema: Type.Object(
      {
        ...Delivery,
        url: NullableText('Where it was sent last.'),
        body: Type.String({ description: 'Of the request.' }),
        response: NullableText('The first 1,000 characters of the body of the response.'),
      },
      { title: 'WebhookDeliveryDetails' },
    ),
    example: {
      ...exampleDelivery,
      url: exampleEndpoint.url,
      body: '{"type":"key.created","timestamp":"2026-11-15T10:02:11.000Z","workspace":"acme","data":{}}',
      response: '',
    },
  },
  faults: [],
})

const resend = operation({
  id: 'webhooks.resend',
  method: 'POST',
  path: '/workspaces/{workspace}/webhooks/{id}/deliveries/{position}/resend',
  access: 'owner',
  summary: 'Send a delivery again',
  description:
    'Adds the event to the end of the queue, with the same id. If the delivery is still in the queue, the ' +
    'queue is sent now instead of at the time of the next attempt.',
  params: Type.Object(OnDelivery),
  response: queued,
  faults: ['conflict'],
})

export const webhookOperations = [
  list,
  create,
  update,
  remove,
  rotate,
  sendTest,
  listDeliveries,
  readDelivery,
  resend,
] as const
