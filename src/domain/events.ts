// Events of a workspace, for its webhooks. They are written to the queues of its endpoints in the transaction
// of the change: there is an event if and only if the change was committed.
import type { EventData, EventType } from '../contract/events.ts'
import type { Role } from '../store/members.ts'
import type { Tx } from '../store/store.ts'
import type { ClosedTunnel } from '../store/tunnels.ts'
import {
  filterWithEndpoints,
  insertDeliveries,
  type NewDelivery,
  reservePositions,
} from '../store/webhook-events.ts'
import type { Changes } from './audit-changes.ts'
import type { Actor, Services } from './context.ts'
import { isoOf } from './timestamps.ts'

type Invitation = EventData<'member.invited'>['invitation']

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
  const found = await filterWithEndpoints(tx, [...byWorkspace.keys()])
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

export const memberInEvent = (user: Record<'id' | 'name' | 'email', string>, role: Role) => ({
  id: user.id,
  name: user.name,
  email: user.email,
  role,
})

export const recordInvitation = (
  tx: Tx,
  services: EventServices,
  { workspaceId, actor, invitation }: { workspaceId: string; actor: Actor; invitation: Invitation },
): Promise<void> => {
  const { id, email, role, expiresAt } = invitation
  return recordEvent(tx, services, {
    workspaceId,
    type: 'member.invited',
    data: { invitation: { id, email, role, expiresAt }, actor: eventActor(actor) },
  })
}

/** Tunnels of any workspaces. */
export const recordTunnels = (
  tx: Tx,
  services: EventServices,
  type: 'tunnel.opened' | 'tunnel.closed',
  tunnels: readonly ClosedTunnel[],
): Promise<void> =>
  recordEvents(
    tx,
    services,
    tunnels.map((row) => ({
      workspaceId: row.workspace_id,
      type,
      data: {
        tunnel: {
          id: row.id,
          name: row.name,
          type: row.type,
          url: row.url,
          keyId: row.key_id,
          edgeId: row.edge_id,
          clientAddress: row.client_address,
          openedAt: isoOf(row.opened_at),
        },
      },
    })),
  )

/** A change of a workspace and its settings. */
export const recordUpdate = (
  tx: Tx,
  services: EventServices,
  { workspaceId, actor, changes }: { workspaceId: string; actor: Actor; changes: Changes },
): Promise<void> =>
  recordEvent(tx, services, {
    workspaceId,
    type: 'workspace.updated',
    data: { changes, actor: eventActor(actor) },
  })
