// What the control plane does not know yet of the open tunnels of an edge, as the next sync. A sync has
// everything since the last acknowledged one, so one that is lost, repeated or late does no harm.
import type { ClaimedTunnel, TunnelSync } from '../api.ts'

/** The limit of changed tunnels in one sync, and of closed ones. */
export const SYNC_ITEMS_MAX = 1_000
/** Beyond it, a snapshot replaces the list of closed tunnels. */
const CLOSED_MAX = 10_000

/** Traffic of a tunnel since it was opened, and its open streams. */
export interface TunnelUsage {
  readonly requests: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly streams: number
}

/** A tunnel whose key has to be verified, so that the control plane lists it. */
export interface UngrantedTunnel {
  readonly tunnel: ClaimedTunnel
  /** The raw API key. */
  readonly key: string
  /** Sent with the tunnel until it is listed; undefined if none was required. */
  grant: string | undefined
  /** The tunnel is not reported until there is another grant. */
  isGrantRequired: boolean
}

interface Entry extends UngrantedTunnel {
  /** Undefined while it is claimed. */
  usage: (() => TunnelUsage) | undefined
  /** What the control plane has acknowledged; undefined if it may not list the tunnel. */
  acknowledged: TunnelUsage | undefined
}

/** The control plane is asked for as many grants before a sync. */
const GRANTS_MAX = 500
const NO_USAGE: TunnelUsage = { requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 }

export interface NextSync {
  readonly changes: Pick<
    TunnelSync,
    'sequence' | 'previous' | 'load' | 'changed' | 'closed' | 'grants' | 'snapshot'
  >
  /** There are more tunnels to open or close than one sync can have. */
  readonly hasMore: boolean
  /** The control plane has processed it, except for the tunnels with these ids, which need another grant. */
  acknowledge(ungranted: Iterable<string>): void
}

export class TunnelChanges {
  readonly #tunnels = new Map<string, Entry>()
  /** Ids that the control plane may list. */
  readonly #closed = new Set<string>()
  #sequence = 0
  /** Sequence of the last acknowledged sync; 0 if the next one is a snapshot. */
  #previous = 0
  /** Sequence of the first sync of the snapshot that is not complete yet. */
  #snapshotFirst: number | undefined
  #resyncs = 0

  get nextSequence(): number {
    return this.#sequence + 1
  }

  has(id: string): boolean {
    return this.#tunnels.has(id)
  }

  /** Reported with no traffic, so that every sync has what the control plane may have granted. */
  claiming(tunnel: ClaimedTunnel, key: string): void {
    this.#tunnels.set(tunnel.id, newEntry(tunnel, key, undefined))
  }

  opened(tunnel: ClaimedTunnel, key: string, usage: () => TunnelUsage): void {
    this.#closed.delete(tunnel.id)
    const current = this.#tunnels.get(tunnel.id)
    // A client that joins a TCP tunnel has its port, and not the one it was claimed with.
    if (current?.tunnel.url === tunnel.url) current.usage = usage
    else this.#tunnels.set(tunnel.id, newEntry(tunnel, key, usage))
  }

  /** Also after a claim that was rejected or got no response. */
  closed(id: string): void {
    this.#tunnels.delete(id)
    this.#closed.add(id)
    if (this.#closed.size > CLOSED_MAX) this.resync()
  }

  closeAll(): void {
    for (const id of [...this.#tunnels.keys()]) this.closed(id)
  }

  /** The control plane does not have what it acknowledged: begins with a snapshot again. */
  resync(): void {
    this.#resyncs += 1
    this.#previous = 0
    this.#closed.clear()
    for (const entry of this.#tunnels.values()) {
      entry.acknowledged = undefined
      entry.isGrantRequired = false
    }
  }

  /** Tunnels that wait for a grant; not all if there are many. */
  ungranted(): UngrantedTunnel[] {
    return this.#tunnels
      .values()
      .filter(({ isGrantRequired }) => isGrantRequired)
      .take(GRANTS_MAX)
      .toArray()
  }

  next(): NextSync {
    this.#sequence += 1
    const sequence = this.#sequence
    const resyncs = this.#resyncs
    const unknown: [Entry, TunnelUsage][] = []
    const changed: [Entry, TunnelUsage][] = []
    let streams = 0
    for (const entry of this.#tunnels.values()) {
      const usage = entry.usage?.() ?? NO_USAGE
      streams += usage.streams
      if (entry.isGrantRequired) continue
      if (!entry.acknowledged) unknown.push([entry, usage])
      else if (!isEqual(usage, entry.acknowledged)) changed.push([entry, usage])
    }
    const batch = [...unknown, ...changed].slice(0, SYNC_ITEMS_MAX)
    const closed = [...this.#closed.values().take(SYNC_ITEMS_MAX)]
    const isLast = unknown.length <= SYNC_ITEMS_MAX
    if (this.#previous === 0) this.#snapshotFirst = isLast ? undefined : sequence
    const first = this.#snapshotFirst
    const grants = [...new Set(batch.flatMap(([{ grant }]) => grant ?? []))]
    return {
      changes: {
        sequence,
        previous: this.#previous,
        load: { tunnels: this.#tunnels.size, streams },
        changed: batch.map(([{ tunnel, usage: isOpen }, usage]) => ({
          ...tunnel,
          ...usage,
          ...(!isOpen && { isClaiming: true }),
        })),
        closed,
        ...(grants.length > 0 && { grants }),
        ...(first !== undefined && { snapshot: { first, isLast } }),
      },
      hasMore: !isLast || this.#closed.size > SYNC_ITEMS_MAX,
      acknowledge: (ungranted) => {
        if (resyncs !== this.#resyncs) return
        const required = new Set(ungranted)
        this.#previous = sequence
        if (isLast) this.#snapshotFirst = undefined
        for (const [entry, usage] of batch)
          if (required.has(entry.tunnel.id)) entry.isGrantRequired = true
          else this.#acknowledge(entry, usage)
        for (const id of closed) this.#closed.delete(id)
      },
    }
  }

  /** Moved to the end, so that the counters of all tunnels are reported in turn if there are many. */
  #acknowledge(entry: Entry, usage: TunnelUsage): void {
    const { id } = entry.tunnel
    if (this.#tunnels.get(id) !== entry) return
    entry.acknowledged = usage
    entry.grant = undefined
    this.#tunnels.delete(id)
    this.#tunnels.set(id, entry)
  }
}

const newEntry = (tunnel: ClaimedTunnel, key: string, usage: Entry['usage']): Entry => ({
  tunnel,
  key,
  usage,
  acknowledged: undefined,
  grant: undefined,
  isGrantRequired: false,
})

const isEqual = (usage: TunnelUsage, other: TunnelUsage | undefined) =>
  other !== undefined &&
  usage.requests === other.requests &&
  usage.bytesIn === other.bytesIn &&
  usage.bytesOut === other.bytesOut &&
  usage.streams === other.streams
