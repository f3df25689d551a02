// Events of a workspace for its webhooks. They are written to the queues of its endpoints in the transaction
// of the change, so there is an event if and only if the change was committed.
import type { TSchema } from 'typebox'
import { events as definitions, type EventData, type EventType } from '../../../contract/events.ts'
import type { Role } from '../../store/accounts/members.ts'
import type { Tx } from '../../store/engine/store.ts'
import { type EventReceiver, insertDeliveries, listReceivers } from '../../store/webhooks/events.ts'
import type { Changes } from '../audit/changes.ts'
import type { Caller, Services } from '../context.ts'
import { toIso } from '../timestamps.ts'

type Invitation = EventData<'member.invited'>['invitation']

export type WorkspaceEvent = {
  [T in EventType]: { workspaceId: string; type: T; data: EventData<T> }
}[EventType]

export type EventServices = Pick<Services, 'ids' | 'clock'>

/**
 * Costs one statement if no endpoint subscribes to the event, and waits for no other transaction. Call it
 * after the change, so that events of one row are in the order of its changes.
 */
export const recordEvent = (tx: Tx, services: EventServices, event: WorkspaceEvent): Promise<void> =>
  recordEvents(tx, services, [event])

/** The events may belong to different workspaces. */
export async function recordEvents(
  tx: Tx,
  services: EventServices,
  events: readonly WorkspaceEvent[],
): Promise<void> {
  if (events.length === 0) return
  const receivers = await listReceivers(tx, [...new Set(events.map(({ workspaceId }) => workspaceId))])
  await insertEvents(tx, services, receivers, events)
}

/** Queues each event for the endpoints that subscribe to it. */
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
    const body = serializeEvent(type, { data, workspace: wanting[0]?.slug, at: created_at })
    const event = { event_id: services.ids('evt'), type, body, created_at }
    return wanting.map(({ id }) => ({ ...event, id: services.ids('dlv'), endpoint_id: id }))
  })
  await insertDeliveries(tx, deliveries)
}

interface Occurrence {
  data: unknown
  workspace: string | undefined
  at: number
}

/** The body of a delivery, with the fields that the contract declares and no others. */
export const serializeEvent = (type: EventType, { data, workspace, at }: Occurrence): string =>
  JSON.stringify({ type, timestamp: toIso(at), workspace, data: pickDeclared(definitions[type].data, data) })

/** Removes properties that the schema does not declare. An object without declared ones may have any. */
function pickDeclared(
  { properties }: TSchema & { properties?: Record<string, TSchema> },
  value: unknown,
): unknown {
  if (!properties) return value
  const parts = value as Record<string, unknown>
  return Object.fromEntries(
    Object.entries(properties).map(([name, schema]) => [name, pickDeclared(schema, parts[name])]),
  )
}

const wants = ({ events }: EventReceiver, type: EventType) => events === null || events.includes(`,${type},`)

/** The actor in the data of an event. */
export const eventActor = (actor: Caller) => ({
  kind: actor.kind,
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
  { workspaceId, actor, invitation }: { workspaceId: string; actor: Caller; invitation: Invitation },
): Promise<void> =>
  recordEvent(tx, services, {
    workspaceId,
    type: 'member.invited',
    data: { invitation, actor: eventActor(actor) },
  })

/** Records a change of a workspace or its settings. */
export const recordUpdate = (
  tx: Tx,
  services: EventServices,
  { workspaceId, actor, changes }: { workspaceId: string; actor: Caller; changes: Changes },
): Promise<void> =>
  recordEvent(tx, services, {
    workspaceId,
    type: 'workspace.updated',
    data: { changes, actor: eventActor(actor) },
  })
