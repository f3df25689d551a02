// Webhook endpoints and their queues, in the database.
import { randomBytes } from 'node:crypto'
import type { Services } from '../../../src/server/domain/context.ts'
import { recordEvent } from '../../../src/server/domain/events/record.ts'
import { createWebhookSecrets } from '../../../src/server/domain/webhooks/secrets.ts'
import { createTargets } from '../../../src/server/outbound/targets.ts'
import type { Tables } from '../../../src/server/store/engine/tables.ts'
import { type DeliveryOptions, startWebhookDelivery } from '../../../src/server/webhooks/delivery.ts'
import { atEnd, type Test } from '../cleanup.ts'
import { SECRET } from '../databases/migrated-databases.ts'
import { addRows, readRows } from '../databases/rows.ts'

/** Adds an endpoint that wants all events; returns its id. */
export async function addEndpoint(
  services: Services,
  workspaceId: string,
  given: Partial<Record<keyof Tables['webhook_endpoints'], string | number | null>> = {},
): Promise<string> {
  const id = services.ids('whk')
  const row = {
    id,
    workspace_id: workspaceId,
    url: 'https://hooks.example.com/',
    description: '',
    events: null,
    secret: encryptedSecret(),
    created_at: services.clock(),
    last_position: 0,
    next_position: 1,
    ...given,
  }
  await addRows(services, 'webhook_endpoints', row as never)
  return id
}

/** In the order of the queue, with parsed bodies. Those without a position are the last ones. */
export async function deliveriesOf(services: Services, endpointId: string) {
  const rows = await readRows(services, 'webhook_deliveries', { endpoint_id: endpointId })
  return rows
    .sort((a, b) => (a.position ?? Infinity) - (b.position ?? Infinity) || a.sequence - b.sequence)
    .map((row) => ({ ...row, body: JSON.parse(row.body) }))
}

/**
 * As if the time until the next attempt had passed; `withClaims`: also of claims, as if their node was
 * killed.
 */
export const makeDue = ({ store }: Services, { withClaims = false } = {}) =>
  store.transaction(async (tx) => {
    const query = tx.updateTable('webhook_endpoints').set({ due_at: 0 }).where('due_at', 'is not', null)
    await (withClaims ? query : query.where('claim', 'is', null)).execute()
  })

const secrets = createWebhookSecrets(SECRET, randomBytes)
export const TEST_SECRET = secrets.create()
const encryptedSecret = () => secrets.encrypt(TEST_SECRET)

/** Delivery of a node, to loopback addresses too. */
export function startDelivery(t: Test, services: Services, options: Partial<DeliveryOptions> = {}) {
  const delivery = startWebhookDelivery(services, {
    secrets,
    targets: createTargets({ privateNetworks: ['127.0.0.0/8'] }),
    userAgent: 'test',
    onFailure: () => {},
    onRecovery: () => {},
    pollIntervalMs: 10,
    ...options,
  })
  atEnd(t, delivery.stop)
  return delivery
}

/** Adds events that are told apart by their number. */
export async function recordNumbered(services: Services, workspaceId: string, from: number, count: number) {
  for (let number = from; number < from + count; number++)
    await services.store.transaction((tx) =>
      recordEvent(tx, services, {
        workspaceId,
        type: 'workspace.updated',
        data: { changes: { number: [null, number] }, actor: { kind: 'operator', id: 'test', name: null } },
      }),
    )
}

export const readNumber = ({ body }: { body: { data: { changes: { number: [null, number] } } } }) =>
  body.data.changes.number[1]
