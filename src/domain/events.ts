// Events of a workspace, for its webhooks. They are written to the queues of its endpoints in the transaction
// of the change: there is an event if and only if the change was committed.
import type { EventData, EventType } from '../contract/events.ts'
import type { Tx } from '../store/store.ts'
import {
  findWithEndpoints,
  insertDeliveries,
  type NewDelivery,
  reservePositions,
} from '../store/webhook-events.ts'
import type { Actor, Services } from './context.ts'
import { isoOf } from './timestamps.ts'

export type WorkspaceEvent = {
  [T in EventType]: { workspaceId: string; type: T; data: EventData<T> }
}[EventType]

type EventServices = Pick<Services, 'ids' | 'clock'>

/**
 * Costs one statement if no endpoint wants the event. Otherwise it locks the endpoints of the workspace until
 * the transaction ends, so call it last, but before `publishChange`.
 */
export const recordEvent = (tx: Tx, services: EventServices, event: WorkspaceEvent): Promise<void> =>
  recordOfType(tx, services, [event])

/** Events of several workspaces. Locks the endpoints in the order of the workspaces. */
export async function recordEvents(
  tx: Tx,
  services: EventServices,
  events: readonly WorkspaceEvent[],
): Promise<void> {
  if (events.length === 0) return
  const byWorkspace = Map.groupBy(events, ({ workspaceId }) => workspaceId)
  const found = await findWithEndpoints(tx, [...byWorkspace.keys()])
  for (const workspaceId of [...found].sort())
    for (const ofType of Map.groupBy(byWorkspace.get(workspaceId) ?? [], ({ type }) => type).values())
      await recordOfType(tx, services, ofType)
}

/** Events of one workspace and type. */
async function recordOfType(
  tx: Tx,
  services: EventServices,
  events: readonly WorkspaceEvent[],
): Promise<void> {
  const [first] = events
  if (!first) return
  const { workspaceId, type } = first
  const count = events.length
  const endpoints = await reservePositions(tx, { workspaceId, type, count })
  const [endpoint] = endpoints
  if (!endpoint) return
  const created_at = services.clock()
  const common = { type, timestamp: isoOf(created_at), workspace: endpoint.slug }
  const bodies = events.map(({ data }) => ({
    event_id: services.ids('evt'),
    body: JSON.stringify({ ...common, data }),
  }))
  const rows = endpoints.flatMap(({ id, last }): NewDelivery[] =>
    bodies.map((body, index) => ({
      endpoint_id: id,
      position: last - count + 1 + index,
      type,
      created_at,
      ...body,
    })),
  )
  await insertDeliveries(tx, rows)
}

/** For the data of an event. */
export const eventActor = (actor: Actor) => ({
  kind:
    actor.kind === 'key'
      ? ('key' as const)
      : actor.kind === 'operator'
        ? ('operator' as const)
        : ('user' as const),
  id: actor.id,
  name: actor.kind === 'person' ? actor.name : null,
})
