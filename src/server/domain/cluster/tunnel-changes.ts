// What a transaction on tunnels has changed: recorded when it ends, as events of workspaces, and as locations
// for the edges of the group.

import * as log from '../../store/cluster/location-log.ts'
import type { Tx } from '../../store/engine/store.ts'
import { moveCounts } from '../../store/tunnels/counts.ts'
import type { ClosedTunnel } from '../../store/tunnels/rows.ts'
import { LOCATIONS_CHANGED } from '../../verification/announcement.ts'
import { announce, type PublishedChange, publishChange } from '../../verification/propagation.ts'
import type { Services } from '../context.ts'
import { recordTunnels } from '../events/tunnel-events.ts'
import { Fault } from '../fault.ts'

/** Hosts in one entry of the log, which is one event of the stream. */
const ENTRY_HOSTS_MAX = 400
const CHECKSUM_BYTES = 8

export interface TunnelChanges {
  opened: ClosedTunnel[]
  closed: ClosedTunnel[]
  /** Tunnels of clients that have moved to another edge: theirs has to close them. */
  moved: log.Location[]
}

/** Runs a transaction that opens and closes tunnels, and adds these to the changes. */
export async function changeTunnels<T>(
  services: Services,
  work: (tx: Tx, changes: TunnelChanges) => Promise<T>,
): Promise<T> {
  const { result, published, locations } = await services.store.transaction(async (tx) => {
    const changes: TunnelChanges = { opened: [], closed: [], moved: [] }
    const result = await work(tx, changes)
    return { result, ...(await recordChanges(tx, services, changes)) }
  })
  for (const change of published) announce(services, change)
  if (locations > 0) announceLocations(services)
  return result
}

/** Nodes that miss it poll. */
function announceLocations({ afterLocations, store }: Services): void {
  afterLocations()
  store.notify(LOCATIONS_CHANGED).catch(() => {})
}

/** Call it last in the transaction. Returns what to announce: changes, and how many entries of locations. */
export async function recordChanges(
  tx: Tx,
  services: Services,
  { opened, closed, moved }: TunnelChanges,
): Promise<{ published: PublishedChange[]; locations: number }> {
  await moveCounts(tx, closed)
  await recordTunnels(tx, services, { closed, opened })
  const locations = await recordLocations(tx, services, { opened, others: [...closed, ...moved] })
  const published: PublishedChange[] = []
  for (const id of new Set(moved.map(({ edge_id }) => edge_id)))
    published.push(await publishChange(tx, services, { kind: 'tunnels', subjectId: id }))
  return { published, locations }
}

const locationKey = ({ edge_id, workspace_id, name }: log.Location) => `${edge_id} ${workspace_id} ${name}`

/**
 * The groups are locked before it is read which names are open: so the last entry of a location is right,
 * whatever other transactions do with tunnels of the same name.
 */
async function recordLocations(
  tx: Tx,
  services: Services,
  { opened, others }: { opened: readonly log.Location[]; others: readonly log.Location[] },
): Promise<number> {
  const touched = new Map([...opened, ...others].map((each) => [locationKey(each), each]))
  if (touched.size === 0) return 0
  const edgeIds = new Set([...touched.values()].map(({ edge_id }) => edge_id))
  const heads = await log.lockHeads(tx, [...edgeIds])
  const states = Map.groupBy(await log.readLocations(tx, [...touched.values()]), ({ group }) => group)
  const openedCounts = countBy(opened)
  let appended = 0
  for (const head of heads) {
    const changes = findChanges(states.get(head.group) ?? [], openedCounts)
    const entries = splitChanges(changes).map((part) => ({
      ...part,
      checksum: Buffer.from(services.random(CHECKSUM_BYTES)).toString('hex'),
    }))
    if (entries.length > 0) await log.appendLocations(tx, head, entries, services.clock())
    appended += entries.length
  }
  return appended
}

function countBy(locations: readonly log.Location[]): Map<string, number> {
  const counts = new Map<string, number>()
  for (const location of locations) {
    const key = locationKey(location)
    counts.set(key, (counts.get(key) ?? 0) + 1)
  }
  return counts
}

/** Names of which the first tunnel at an edge was opened, or the last one closed. */
function findChanges(states: readonly log.LocationState[], openedCounts: ReadonlyMap<string, number>) {
  const changes: { opened: log.HostEdge[]; closed: log.HostEdge[] } = { opened: [], closed: [] }
  for (const state of states) {
    const { slug, name, edge_id, open, port, group, workspaceGroup } = state
    const location = log.toHostEdge(`${name}.${slug}`, edge_id, port)
    const openedHere = openedCounts.get(locationKey(state)) ?? 0
    if (openedHere > 0 && workspaceGroup !== group)
      throw new Fault('unavailable', { message: 'The workspace is changing its group. Try again.' })
    if (open === 0) changes.closed.push(location)
    else if (open === openedHere) changes.opened.push(location)
  }
  return changes
}

function splitChanges({ opened, closed }: log.LocationChanges): log.LocationChanges[] {
  const parts: log.LocationChanges[] = []
  for (let start = 0; start < Math.max(opened.length, closed.length); start += ENTRY_HOSTS_MAX / 2) {
    const end = start + ENTRY_HOSTS_MAX / 2
    parts.push({ opened: opened.slice(start, end), closed: closed.slice(start, end) })
  }
  return parts
}
