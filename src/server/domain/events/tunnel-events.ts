// Events of opened and closed tunnels. Edges report these, so a faulty edge or a stolen credential could
// cause any number: they are limited for each edge and workspace, and not added to long queues.
import { type EventType, events } from '../../../contract/events.ts'
import { HOUR_MS } from '../../../lib/time.ts'
import type { Tx } from '../../store/engine/store.ts'
import { countTunnelEvents } from '../../store/tunnels/edge-workspaces.ts'
import { type ClosedTunnel, findConnections, type TunnelPosition } from '../../store/tunnels/rows.ts'
import { type EventReceiver, listReceivers } from '../../store/webhooks/events.ts'
import { toIso } from '../timestamps.ts'
import { type EventServices, insertEvents, type WorkspaceEvent } from './record.ts'

/** Twenty times as many as if all clients of a workspace at an edge reconnected. */
export const EVENTS_PER_HOUR_MAX = 20_000
/** Tunnel events are not added to a longer queue. */
export const WAITING_MAX = 10_000

export const tunnelEventTypes = (Object.keys(events) as EventType[]).filter((type) =>
  type.startsWith('tunnel.'),
)

/** Connections of tunnels. */
interface TunnelChanges {
  closed?: readonly ClosedTunnel[]
  opened?: readonly ClosedTunnel[]
}

/**
 * Records the first connection of a tunnel that was opened, and the last one that was closed. Accepts
 * connections of several workspaces. Costs one statement if no endpoint subscribes to the events.
 */
export async function recordTunnels(
  tx: Tx,
  services: EventServices,
  { closed = [], opened = [] }: TunnelChanges,
): Promise<void> {
  const rows = [...closed, ...opened]
  if (rows.length === 0) return
  const found = await listReceivers(tx, [...new Set(rows.map(({ workspace_id }) => workspace_id))])
  const receivers = found.filter(({ waiting }) => waiting < WAITING_MAX)
  const workspaceIds = new Set(receivers.filter(wantsTunnels).map(({ workspace_id }) => workspace_id))
  const isWanted = ({ workspace_id }: ClosedTunnel) => workspaceIds.has(workspace_id)
  const wanted = { closed: closed.filter(isWanted), opened: opened.filter(isWanted) }
  const changed = await findChangedTunnels(tx, wanted)
  const recorded = [
    ...changed.closed.map((row) => tunnelEvent('tunnel.closed', row)),
    ...changed.opened.map((row) => tunnelEvent('tunnel.opened', row)),
  ]
  if (recorded.length > 0) await insertEvents(tx, services, receivers, await limit(tx, recorded))
}

/** One connection of each tunnel that was not open before, or is not open any more. */
async function findChangedTunnels(tx: Tx, { closed, opened }: Required<TunnelChanges>) {
  const toKey = ({ edge_id, id }: TunnelPosition) => `${edge_id} ${id}`
  const openedKeys = new Set(opened.map(toKey))
  const open = await findConnections(tx, [...closed, ...opened])
  const openIds = new Set(open.map(({ tunnel_id }) => tunnel_id))
  const openBefore = new Set(
    [...open.filter((connection) => !openedKeys.has(toKey(connection))), ...closed].map(
      ({ tunnel_id }) => tunnel_id,
    ),
  )
  const byTunnel = (rows: readonly ClosedTunnel[]) => [
    ...new Map(rows.map((row) => [`${row.workspace_id} ${row.tunnel_id}`, row])).values(),
  ]
  return {
    closed: byTunnel(closed.filter(({ tunnel_id }) => !openIds.has(tunnel_id))),
    opened: byTunnel(opened.filter(({ tunnel_id }) => !openBefore.has(tunnel_id))),
  }
}

const wantsTunnels = ({ events }: EventReceiver) => events === null || events.includes(',tunnel.')

type TunnelEvent = ReturnType<typeof tunnelEvent>

/** The first event beyond the limit of an edge and workspace is replaced by one that says so. */
async function limit(tx: Tx, recorded: readonly TunnelEvent[]): Promise<WorkspaceEvent[]> {
  const groups = Map.groupBy(recorded, ({ workspaceId, data }) => `${data.tunnel.edgeId} ${workspaceId}`)
  const counts = await countTunnelEvents(
    tx,
    [...groups].map(([key, { length }]) => {
      const [edge_id = '', workspace_id = ''] = key.split(' ')
      return { edge_id, workspace_id, added: length }
    }),
  )
  const totals = new Map(
    counts.map(({ edge_id, workspace_id, events, hour }) => [`${edge_id} ${workspace_id}`, { events, hour }]),
  )
  return [...groups].flatMap(([key, group]): WorkspaceEvent[] => {
    const { events = 0, hour = 0 } = totals.get(key) ?? {}
    const remaining = EVENTS_PER_HOUR_MAX - (events - group.length)
    if (group.length <= remaining) return group
    const [first] = group
    if (remaining < 0 || !first) return []
    const { workspaceId, data } = first
    const until = toIso(hour + HOUR_MS)
    const limited = {
      workspaceId,
      type: 'tunnel.limited' as const,
      data: { edgeId: data.tunnel.edgeId, until },
    }
    return [...group.slice(0, remaining), limited]
  })
}

const tunnelEvent = (type: 'tunnel.opened' | 'tunnel.closed', row: ClosedTunnel) => ({
  workspaceId: row.workspace_id,
  type,
  data: {
    tunnel: {
      id: row.tunnel_id,
      name: row.name,
      type: row.type,
      url: row.url,
      keyId: row.key_id,
      edgeId: row.edge_id,
      clientAddress: row.client_address,
      openedAt: toIso(row.opened_at),
    },
  },
})
