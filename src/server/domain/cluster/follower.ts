// Follows the location logs and the peers of groups, for the change streams of this node. All streams share
// one poller, which runs only while a stream needs it. Notifications only reduce its latency.
import * as locationLog from '../../store/cluster/location-log.ts'
import { listPeers } from '../../store/cluster/peers.ts'
import type { Store } from '../../store/engine/store.ts'
import { LOCATIONS_CHANGED } from '../../verification/announcement.ts'
import type { ChangeFollower } from '../../verification/change-follower.ts'

const POLL_INTERVAL_MS = 250
/** How often the peers are read without a notification. */
const PEERS_INTERVAL_MS = 1_000
/** How many entries are read at once. A stream that has missed more gets a snapshot. */
const ENTRIES_MAX = 1_000
const PAGE_ROWS = 400

export type LocationEntry = locationLog.LocationEntry
export type LocationPosition = locationLog.LocationPosition

/** The addresses of edges, by id. */
export type PeerAddresses = ReadonlyMap<string, string>

interface GroupListener {
  onLocations: (entry: locationLog.LocationEntry) => void
  /** Entries were missed: the stream has to start again. */
  onReset: () => void
  onPeers: () => void
}

interface Group {
  position: locationLog.LocationPosition
  peers: PeerAddresses
  listeners: Set<GroupListener>
}

export interface GroupSubscription {
  /** The listener gets all entries after this position. */
  readonly position: locationLog.LocationPosition
  peers(): PeerAddresses
  unsubscribe(): void
}

export interface ClusterFollower {
  subscribe(group: string, listener: GroupListener): Promise<GroupSubscription>
  /** The entries after one position up to another; undefined if some are missing or there are too many. */
  backlog(
    group: string,
    after: locationLog.LocationPosition,
    upTo: locationLog.LocationPosition,
  ): Promise<locationLog.LocationEntry[] | undefined>
  /**
   * All open hosts of a group, in pages. They may include changes after the position of the subscription,
   * whose entries are then applied again.
   */
  snapshot(group: string): AsyncGenerator<locationLog.HostEdge[]>
  /** Call it when this process has changed locations. */
  wake(): void
  stop(): Promise<void>
}

export function startClusterFollower(
  store: Store,
  changes: Pick<ChangeFollower, 'subscribe'>,
): ClusterFollower {
  const { db } = store
  const groups = new Map<string, Group>()
  let timer: NodeJS.Timeout | undefined
  let polling: Promise<void> | undefined
  let isDue = false
  let arePeersDue = false
  let peersReadAt = Number.NEGATIVE_INFINITY
  let isStopped = false

  async function readLog(name: string, group: Group, head: locationLog.LocationPosition): Promise<void> {
    if (isSamePosition(group.position, head)) return
    const entries = (await locationLog.readEntries(db, name, group.position, ENTRIES_MAX)) ?? []
    for (const entry of entries) {
      group.position = entry
      for (const { onLocations } of group.listeners) onLocations(entry)
    }
    if (entries.length === ENTRIES_MAX) isDue = true
    if (entries.length > 0) return
    // The entries after the position were deleted, or the database was restored from a backup.
    group.position = head
    for (const { onReset } of group.listeners) onReset()
  }

  async function readPeers(): Promise<void> {
    arePeersDue = false
    peersReadAt = performance.now()
    const rows = Map.groupBy(await listPeers(db), (row) => row.group)
    for (const [name, group] of groups) {
      const peers = new Map((rows.get(name) ?? []).map(({ id, address }) => [id, address]))
      if (isSameMap(peers, group.peers)) continue
      group.peers = peers
      for (const { onPeers } of group.listeners) onPeers()
    }
  }

  async function poll(): Promise<void> {
    isDue = false
    const heads = new Map((await locationLog.readHeads(db)).map((head) => [head.group, head]))
    for (const [name, group] of groups) {
      const head = heads.get(name)
      if (head) await readLog(name, group, head)
    }
    if (arePeersDue || performance.now() - peersReadAt >= PEERS_INTERVAL_MS) await readPeers()
    for (const [name, { listeners }] of groups) if (listeners.size === 0) groups.delete(name)
  }

  /**
   * Runs one poll at a time. One that becomes due meanwhile starts after it, and sees what that one missed.
   */
  function startPoll(): void {
    if (polling || isStopped || groups.size === 0) return
    clearTimeout(timer)
    // The change follower reports outages of the database.
    polling = poll()
      .catch(() => {})
      .finally(() => {
        polling = undefined
        if (isDue) startPoll()
        else if (!isStopped && groups.size > 0) timer = setTimeout(startPoll, POLL_INTERVAL_MS).unref()
      })
  }

  function wake(): void {
    isDue = true
    startPoll()
  }

  async function openGroup(name: string): Promise<Group> {
    const head = (await locationLog.readHeads(db)).find(({ group }) => group === name)
    if (!head) throw new Error(`there is no group ${name}`)
    const rows = (await listPeers(db)).filter(({ group }) => group === name)
    const peers = new Map(rows.map(({ id, address }) => [id, address]))
    // Another stream may have opened the group meanwhile.
    const group = groups.get(name) ?? { position: head, peers, listeners: new Set() }
    groups.set(name, group)
    return group
  }

  const { unsubscribe } = changes.subscribe({
    onChange({ kind }) {
      if (kind !== 'edge') return
      arePeersDue = true
      wake()
    },
    onReset: wake,
  })
  const stopListening = store.onNotify((payload) => {
    if (payload === LOCATIONS_CHANGED) wake()
  })

  return {
    async subscribe(name, listener) {
      // The edge may have been connected to a node that has read later entries. A poll in progress may miss
      // them too, so this waits for two.
      for (let polls = 0; polls < 2 && groups.has(name); polls++) {
        wake()
        await polling
      }
      const group = groups.get(name) ?? (await openGroup(name))
      group.listeners.add(listener)
      startPoll()
      const { position } = group
      return { position, peers: () => group.peers, unsubscribe: () => group.listeners.delete(listener) }
    },
    async backlog(group, after, upTo) {
      const missed = upTo.sequence - after.sequence
      if (missed < 0 || missed > ENTRIES_MAX) return undefined
      const read = await locationLog.readEntries(db, group, after, missed)
      return read && isSamePosition(read.at(-1) ?? after, upTo) ? read : undefined
    },
    async *snapshot(group) {
      for (const edgeId of await locationLog.listLocatedEdges(db, group)) {
        let after = ''
        for (;;) {
          const rows = await locationLog.listLocations(db, edgeId, { after, limit: PAGE_ROWS })
          if (rows.length > 0) yield rows.map(({ host, port }) => locationLog.toHostEdge(host, edgeId, port))
          if (rows.length < PAGE_ROWS) break
          after = (rows.at(-1) as (typeof rows)[number]).id
        }
      }
    },
    wake,
    async stop() {
      isStopped = true
      stopListening()
      unsubscribe()
      clearTimeout(timer)
      await polling
    },
  }
}

const isSamePosition = (a: locationLog.LocationPosition, b: locationLog.LocationPosition) =>
  a.sequence === b.sequence && a.checksum === b.checksum

const isSameMap = (a: PeerAddresses, b: PeerAddresses) =>
  a.size === b.size && [...a].every(([id, address]) => b.get(id) === address)
