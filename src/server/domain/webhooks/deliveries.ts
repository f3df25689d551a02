// The log of deliveries to a webhook endpoint, and deliveries that owners add to its queue: test events, and
// those that are sent again.

import type { Tx } from '../../store/engine/store.ts'
import {
  findDelivery,
  findEndpoint,
  type ListedDelivery,
  listDeliveries as listRows,
  restartQueue,
} from '../../store/webhooks/endpoints.ts'
import { insertDeliveries, type NewDelivery } from '../../store/webhooks/events.ts'
import { assignPositions } from '../../store/webhooks/positions.ts'
import type { EndpointRow } from '../../store/webhooks/queue.ts'
import { getWorkspace } from '../../store/workspaces.ts'
import type { MemberContext } from '../context.ts'
import { eventActor, serializeEvent } from '../events/record.ts'
import { Fault } from '../fault.ts'
import { isoOrNull, toIso } from '../timestamps.ts'
import { audit, withEndpoint } from './endpoints.ts'

/** Owners cannot add to a longer queue. */
const PENDING_FOR_OWNERS_MAX = 100

export async function listDeliveries(
  ctx: MemberContext,
  id: string,
  { limit = 20, before }: { limit?: number | undefined; before?: number | undefined },
) {
  const endpoint = await requireEndpoint(ctx, id)
  const rows = await listRows(ctx.store.db, id, { before, limit: limit + 1 })
  const page = rows.slice(0, limit)
  return {
    deliveries: page.map((row) => describe(row, endpoint)),
    next: rows.length > limit ? (page.at(-1)?.position ?? null) : null,
  }
}

export async function readDelivery(ctx: MemberContext, id: string, position: number) {
  const endpoint = await requireEndpoint(ctx, id)
  const row = await findDelivery(ctx.store.db, id, position)
  if (!row) throw new Fault('not_found')
  const { url, body, response } = row
  return { ...describe(row, endpoint), url, body, response }
}

async function requireEndpoint({ store, workspaceId }: MemberContext, id: string): Promise<EndpointRow> {
  const endpoint = await findEndpoint(store.db, { workspaceId, id })
  if (!endpoint) throw new Fault('not_found')
  return endpoint
}

const describe = (row: ListedDelivery, { next_position }: EndpointRow) => ({
  position: row.position,
  eventId: row.event_id,
  type: row.type,
  createdAt: toIso(row.created_at),
  state:
    row.delivered_at !== null
      ? ('delivered' as const)
      : row.position === next_position && row.attempts > 0
        ? ('failing' as const)
        : ('pending' as const),
  attempts: row.attempts,
  attemptedAt: isoOrNull(row.attempted_at),
  status: row.status,
  durationMs: row.duration_ms,
  error: row.error,
})

export const sendTestEvent = (ctx: MemberContext, id: string) =>
  withEndpoint(ctx, id, async (tx, endpoint) => {
    const { slug } = await getWorkspace(tx, ctx.workspaceId)
    const type = 'webhook.test'
    const data = { actor: eventActor(ctx.actor) }
    const body = serializeEvent(type, { data, workspace: slug, at: ctx.clock() })
    await audit(tx, ctx, 'webhook.tested', endpoint)
    return enqueue(tx, ctx, endpoint, { event_id: ctx.ids('evt'), type, body })
  })

export const resend = (ctx: MemberContext, id: string, position: number) =>
  withEndpoint(ctx, id, async (tx, endpoint) => {
    const row = await findDelivery(tx, id, position)
    if (!row) throw new Fault('not_found')
    await audit(tx, ctx, 'webhook.resent', endpoint, { event: [null, row.event_id] })
    if (row.delivered_at !== null) return enqueue(tx, ctx, endpoint, row)
    requireEnabled(endpoint)
    // The delivery is in the queue. If the endpoint is claimed, it is being sent already.
    if (endpoint.claim === null) await restartQueue(tx, id)
    return { position }
  })

function requireEnabled({ disabled_at }: EndpointRow): void {
  if (disabled_at === null) return
  throw new Fault('conflict', { message: 'This webhook endpoint is disabled. Enable it first.' })
}

async function enqueue(
  tx: Tx,
  ctx: MemberContext,
  endpoint: EndpointRow,
  { event_id, type, body }: Pick<NewDelivery, 'event_id' | 'type' | 'body'>,
) {
  requireEnabled(endpoint)
  const id = ctx.ids('dlv')
  await insertDeliveries(tx, [
    { endpoint_id: endpoint.id, id, event_id, type, body, created_at: ctx.clock() },
  ])
  const { deliveries } = await assignPositions(tx, [endpoint], PENDING_FOR_OWNERS_MAX)
  const position = deliveries.find((delivery) => delivery.id === id)?.position
  if (position === undefined || position - endpoint.next_position >= PENDING_FOR_OWNERS_MAX)
    throw new Fault('conflict', {
      message: `${PENDING_FOR_OWNERS_MAX} deliveries to this endpoint are waiting. Try again when they are sent.`,
    })
  return { position }
}
