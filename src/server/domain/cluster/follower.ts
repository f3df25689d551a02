// Follows the location logs and the peers of groups for the change streams of this node: one reader for all
// streams, which runs only while there are streams that need it. Notifications only reduce latency.
import * as log from '../../store/cluster/location-log.ts'
import { listPeers } from '../../store/cluster/peers.ts'
import type { Store } from '../../store/engine/store.ts'
import { LOCATIONS_CHANGED } from '../../verification/announcement.ts'
import type { ChangeFollower } from '../../verification/change-follower.ts'

const POLL_INTERVAL_MS = 250
/** How often it is read which edges are peers. */
const PEERS_INTERVAL_MS = 1_000
/** Entries that are read at once. A stream that has missed more gets a snapshot. */
const ENTRIES_MAX = 1_000
const PAGE_ROWS = 400

export type LocationEntry = log.LocationEntry
export type LocationPosition = log.LocationPosition

/** Addresses by the ids of edges. */
export type PeerAddresses = ReadonlyMap<string, string>

interface GroupListener {
  onLocations: (entry: log.LocationEntry) => void
  /** Entries were missed. */
  onReset: () => void
  onPeers: () => void
}

interface Group {
  position: log.LocationPosition
  peers: PeerAddresses
  listeners: Set<GroupListener>
}

export interface GroupSubscription {
  /** The listener gets the entries after this position. */
  readonly position: log.LocationPosition
  peers(): PeerAddresses
  unsubscribe(): void
}

export interface ClusterFollower {
  subscribe(group: string, listener: GroupListener): Promise<GroupSubscription>
  /** The entries after one position up to another; undefined if some are missing or there are too many. */
  backlog(
    group: string,
    after: log.LocationPosition,
    upTo: log.LocationPosition,
  ): Promise<log.LocationEntry[] | undefined>
  /**
   * Pages of everything that is open in a group. It may have later changes, and entries may be applied twice.
   */
  snapshot(group: string): AsyncGenerator<log.HostEdge[]>
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
  let working: Promise<void> | undefined
  let isDue = false
  let arePeersDue = false
  let peersReadAt = Number.NEGATIVE_INFINITY
  let isStopped = false

  async function readLog(name: string, group: Group, head: log.LocationPosition): Promise<void> {
    if (isSamePosition(group.position, head)) return
    const entries = (await log.readEntries(db, name, group.position, ENTRIES_MAX)) ?? []
    for (const entry of entries) {
      group.position = entry
      for (const { onLocations } of group.listeners) onLocations(entry)
    }
    if (entries.length === ENTRIES_MAX) isDue = true
    if (entries.length > 0) return
    // The log was deleted up to here, or the database was rolled back.
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
    const heads = new Map((await log.readHeads(db)).map((head) => [head.group, head]))
    for (const [name, group] of groups) {
      const head = heads.get(name)
      if (head) await readLog(name, group, head)
    }
    if (arePeersDue || performance.now() - peersReadAt >= PEERS_INTERVAL_MS) await readPeers()
    for (const [name, { listeners }] of groups) if (listeners.size === 0) groups.delete(name)
  }

  /** Runs one poll at a time. One that becomes due meanwhile starts after it, so it sees every commit. */
  function work(): void {
    if (working || isStopped || groups.size === 0) return
    clearTimeout(timer)
    // The change follower reports outages of the database.
    working = poll()
      .catch(() => {})
      .finally(() => {
        working = undefined
        if (isDue) work()
        else if (!isStopped && groups.size > 0) timer = setTimeout(work, POLL_INTERVAL_MS).unref()
      })
  }

  function wake(): void {
    isDue = true
    work()
  }

  async function openGroup(name: string): Promise<Group> {
    const head = (await log.readHeads(db)).find(({ group }) => group === name)
    if (!head) throw new Error(`there is no group ${name}`)
    const rows = (await listPeers(db)).filter(({ group }) => group === name)
    const peers = new Map(rows.map(({ id, address }) => [id, address]))
    // Another stream may have opened it meanwhile.
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
      // The edge may come from a node that is ahead of this one. A poll in progress may have begun too early.
      for (let polls = 0; polls < 2 && groups.has(name); polls++) {
        wake()
        await working
      }
      const group = groups.get(name) ?? (await openGroup(name))
      group.listeners.add(listener)
      work()
      const { position } = group
      return { position, peers: () => group.peers, unsubscribe: () => group.listeners.delete(listener) }
    },
    async backlog(group, after, upTo) {
      const missed = upTo.sequence - after.sequence
      if (missed < 0 || missed > ENTRIES_MAX) return undefined
      const read = await log.readEntries(db, group, after, missed)
      return read && isSamePosition(read.at(-1) ?? after, upTo) ? read : undefined
    },
    async *snapshot(group) {
      for (const edgeId of await log.listLocatedEdges(db, group)) {
        let after = ''
        for (;;) {
          const rows = await log.listLocations(db, edgeId, { after, limit: PAGE_ROWS })
          if (rows.length > 0) yield rows.map(({ host }) => [host, edgeId] as const)
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
      await working
    },
  }
}

const isSamePosition = (a: log.LocationPosition, b: log.LocationPosition) =>
  a.sequence === b.sequence && a.checksum === b.checksum

const isSameMap = (a: PeerAddresses, b: PeerAddresses) =>
  a.size === b.size && [...a].every(([id, address]) => b.get(id) === address)
