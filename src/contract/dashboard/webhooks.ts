// Webhook endpoints of a workspace, and the log of deliveries to them.

import Type from 'typebox'
import { overlaps } from '../../lib/credentials/rotation.ts'
import { type EventType, eventTypes } from '../events.ts'
import { Id, Instant, InstantOrNull, IntegerOrNull, Label, OneOf, ok, TextOrNull } from '../fields.ts'
import { WEBHOOK_URL_CHARS_MAX } from '../limits.ts'
import { operation, STRICT } from '../operation.ts'
import { InWorkspace } from './members.ts'

const DELIVERIES_PER_PAGE_MAX = 100

const Url = Type.String({
  maxLength: WEBHOOK_URL_CHARS_MAX,
  pattern: '^https?://[^\\s\\p{Cc}\\p{Cs}]+$',
  examples: ['https://hooks.example.com/adit'],
  'x-rule': `must be an http or https URL of at most ${WEBHOOK_URL_CHARS_MAX} characters`,
})

/** Test events are sent whatever an endpoint selects. */
const selectableTypes = eventTypes.filter((type) => type !== 'webhook.test')

/** An empty list selects all types, also those of later versions. */
const Events = Type.Array(OneOf<EventType>(selectableTypes), { maxItems: selectableTypes.length })

const Endpoint = Type.Object({
  id: Id,
  url: Url,
  description: Label,
  events: Events,
  createdAt: Instant,
  disabledAt: InstantOrNull(),
  /** `owner`, `failing` for 24 hours, `gone` (HTTP 410), or `backlog`: too many deliveries wait. */
  disabledReason: TextOrNull,
  pending: Type.Integer(),
  failingSince: InstantOrNull(),
  previousSecretUntil: InstantOrNull(),
})

const Secret = Type.String()

const EndpointParams = { ...InWorkspace, id: Id }

const queued = ok({ position: Type.Integer() })

const Delivery = {
  position: Type.Integer(),
  eventId: Type.String(),
  type: Type.String(),
  createdAt: Instant,
  state: OneOf(['delivered', 'failing', 'pending']),
  attempts: Type.Integer(),
  attemptedAt: InstantOrNull(),
  status: IntegerOrNull,
  durationMs: IntegerOrNull,
  error: TextOrNull,
}

const DeliveryParams = {
  ...EndpointParams,
  position: Type.String({
    pattern: '^[1-9][0-9]{0,14}$',
    maxLength: 15,
    examples: ['41'],
    'x-rule': 'must be a whole number from 1',
  }),
}

export const webhookOperations = [
  operation({
    id: 'webhooks.list',
    method: 'GET',
    path: '/workspaces/{workspace}/webhooks',
    access: 'owner',
    summary: 'List webhook endpoints',
    params: Type.Object(InWorkspace),
    response: ok({ endpoints: Type.Array(Endpoint), allowsHttp: Type.Boolean() }),
  }),
  operation({
    id: 'webhooks.create',
    method: 'POST',
    path: '/workspaces/{workspace}/webhooks',
    access: 'owner',
    audit: ['webhook.created'],
    summary: 'Add a webhook endpoint',
    params: Type.Object(InWorkspace),
    body: Type.Object({ url: Url, description: Type.Optional(Label), events: Type.Optional(Events) }, STRICT),
    response: { status: 201, schema: Type.Object({ ...Endpoint.properties, secret: Secret }), secret: true },
    faults: ['conflict'],
  }),
  operation({
    id: 'webhooks.update',
    method: 'POST',
    path: '/workspaces/{workspace}/webhooks/{id}',
    access: 'owner',
    audit: ['webhook.changed', 'webhook.enabled', 'webhook.disabled'],
    summary: 'Change, enable or disable a webhook endpoint',
    params: Type.Object(EndpointParams),
    body: Type.Object(
      {
        url: Type.Optional(Url),
        description: Type.Optional(Label),
        events: Type.Optional(Events),
        enabled: Type.Optional(Type.Boolean()),
      },
      STRICT,
    ),
    response: { status: 200, schema: Endpoint },
  }),
  operation({
    id: 'webhooks.delete',
    method: 'DELETE',
    path: '/workspaces/{workspace}/webhooks/{id}',
    access: 'owner',
    audit: ['webhook.deleted'],
    summary: 'Delete a webhook endpoint',
    params: Type.Object(EndpointParams),
    response: ok({ id: Id, deleted: Type.Literal(true) }),
  }),
  operation({
    id: 'webhooks.rotate',
    method: 'POST',
    path: '/workspaces/{workspace}/webhooks/{id}/secret',
    access: 'owner',
    audit: ['webhook.secret-rotated'],
    summary: 'Rotate the secret of a webhook endpoint',
    params: Type.Object(EndpointParams),
    body: Type.Object({ overlap: OneOf(overlaps) }, STRICT),
    response: {
      status: 200,
      schema: Type.Object({ secret: Secret, previousSecretUntil: InstantOrNull() }),
      secret: true,
    },
  }),
  operation({
    id: 'webhooks.test',
    method: 'POST',
    path: '/workspaces/{workspace}/webhooks/{id}/test',
    access: 'owner',
    audit: ['webhook.tested'],
    summary: 'Send a test event',
    params: Type.Object(EndpointParams),
    response: queued,
    faults: ['conflict'],
  }),
  operation({
    id: 'webhooks.deliveries',
    method: 'GET',
    path: '/workspaces/{workspace}/webhooks/{id}/deliveries',
    access: 'owner',
    summary: 'List deliveries to a webhook endpoint',
    params: Type.Object(EndpointParams),
    query: Type.Object({
      limit: Type.Optional(Type.Integer({ minimum: 1, maximum: DELIVERIES_PER_PAGE_MAX, default: 20 })),
      before: Type.Optional(Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER })),
    }),
    response: ok({ deliveries: Type.Array(Type.Object(Delivery)), next: IntegerOrNull }),
  }),
  operation({
    id: 'webhooks.delivery',
    method: 'GET',
    path: '/workspaces/{workspace}/webhooks/{id}/deliveries/{position}',
    access: 'owner',
    summary: 'Get a delivery',
    params: Type.Object(DeliveryParams),
    response: ok({
      ...Delivery,
      url: TextOrNull,
      body: Type.String(),
      /** The first 1,000 characters of the response body. */
      response: TextOrNull,
    }),
  }),
  operation({
    id: 'webhooks.resend',
    method: 'POST',
    path: '/workspaces/{workspace}/webhooks/{id}/deliveries/{position}/resend',
    access: 'owner',
    audit: ['webhook.resent'],
    summary: 'Send a delivery again',
    params: Type.Object(DeliveryParams),
    response: queued,
    faults: ['conflict'],
  }),
] as const
