// Events of a workspace, for its webhooks. They are written to the queues of its endpoints in the transaction
// of the change: there is an event if and only if the change was committed.
import type { EventData, EventType } from '../../../contract/events.ts'
import type { Role } from '../../store/accounts/members.ts'
import type { Tx } from '../../store/engine/store.ts'
import { type EventReceiver, insertDeliveries, listReceivers } from '../../store/webhooks/events.ts'
import type { Changes } from '../audit/changes.ts'
import type { Actor, Services } from '../context.ts'
import { isoOf } from '../timestamps.ts'

type Invitation = EventData<'member.invited'>['invitation']

export type WorkspaceEvent = {
  [T in EventType]: { workspaceId: string; type: T; data: EventData<T> }
}[EventType]

export type EventServices = Pick<Services, 'ids' | 'clock'>

/**
 * Costs one statement if no endpoint wants the event, and waits for no other transaction. Call it after the
 * change that it is about: events of one row are then in the order of its changes.
 */
export const recordEvent = (tx: Tx, services: EventServices, event: WorkspaceEvent): Promise<void> =>
  recordEvents(tx, services, [event])

/** Events of any workspaces. */
export async function recordEvents(
  tx: Tx,
  services: EventServices,
  events: readonly WorkspaceEvent[],
): Promise<void> {
  if (events.length === 0) return
  const receivers = await listReceivers(tx, [...new Set(events.map(({ workspaceId }) => workspaceId))])
  await insertEvents(tx, services, receivers, events)
}

/** For those of the receivers that want them. */
export async function insertEvents(
  tx: Tx,
  services: EventServices,
  receivers: readonly EventReceiver[],
  events: readonly WorkspaceEvent[],
): Promise<void> {
  const byWorkspace = Map.groupBy(receivers, ({ workspace_id }) => workspace_id)
  const created_at = services.clock()
  const deliveries = events.flatMap(({ workspaceId, type, data }) => {
    const wanting = byWorkspace.get(workspaceId)?.filter((receiver) => wants(receiver, type)) ?? []
    if (wanting.length === 0) return []
    const body = { type, timestamp: isoOf(created_at), workspace: wanting[0]?.slug, data }
    const event = { event_id: services.ids('evt'), type, body: JSON.stringify(body), created_at }
    return wanting.map(({ id }) => ({ ...event, id: services.ids('dlv'), endpoint_id: id }))
  })
  await insertDeliveries(tx, deliveries)
}

const wants = ({ events }: EventReceiver, type: EventType) => events === null || events.includes(`,${type},`)

/** For the data of an event. */
export const eventActor = (actor: Actor) => ({
  kind:
    actor.kind === 'key'
      ? ('key' as const)
      : actor.kind === 'operator'
        ? ('operator' as const)
        : ('user' as const),
  id: actor.id,
  name: actor.kind === 'user' ? actor.name : null,
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
