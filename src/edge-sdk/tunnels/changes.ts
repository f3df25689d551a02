// Changes of an edge's open tunnels that the control plane has not acknowledged, as the next sync. A sync has
// all changes since the last acknowledged one, so one that is lost, repeated or late does no harm.
import type { ClaimedTunnel, TunnelSync } from '../api.ts'

/** Limit of a sync for changed tunnels, and for closed ones. */
export const SYNC_ITEMS_MAX = 1_000
/** Beyond this number of closed tunnels, a snapshot is sent instead of their list. */
const CLOSED_MAX = 10_000

/** Traffic of a tunnel since it was opened, and its open streams. */
export interface TunnelUsage {
  readonly requests: number
  readonly bytesIn: number
  readonly bytesOut: number
  readonly streams: number
}

/** A tunnel that the control plane lists only after its key is verified. */
export interface UngrantedTunnel {
  readonly tunnel: ClaimedTunnel
  /** The raw API key. */
  readonly key: string
  /** Sent until the control plane lists the tunnel; undefined if none was required. */
  grant: string | undefined
  /** Whether the tunnel needs another grant before it is reported. */
  isGrantRequired: boolean
}

interface Entry extends UngrantedTunnel {
  /** Undefined while the name is being claimed. */
  usage: (() => TunnelUsage) | undefined
  /** The acknowledged usage; undefined if the control plane may not list the tunnel. */
  acknowledged: TunnelUsage | undefined
}

/** Maximum of grants that are requested before a sync. */
const GRANTS_MAX = 500
const NO_USAGE: TunnelUsage = { requests: 0, bytesIn: 0, bytesOut: 0, streams: 0 }

export interface NextSync {
  readonly changes: Pick<
    TunnelSync,
    'sequence' | 'previous' | 'load' | 'changed' | 'closed' | 'grants' | 'snapshot'
  >
  /** Whether more tunnels were opened or closed than fit into one sync. */
  readonly hasMore: boolean
  /** Call this when the control plane has processed the sync, with the ids that need another grant. */
  acknowledge(ungranted: Iterable<string>): void
}

export class TunnelChanges {
  readonly #tunnels = new Map<string, Entry>()
  /** Ids of closed tunnels that the control plane may still list. */
  readonly #closed = new Set<string>()
  #sequence = 0
  /** Sequence of the last acknowledged sync; 0 if the next sync is a snapshot. */
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

  /** Adds a tunnel without traffic, so that every sync has all claims that may have been granted. */
  claiming(tunnel: ClaimedTunnel, key: string): void {
    this.#tunnels.set(tunnel.id, newEntry(tunnel, key, undefined))
  }

  opened(tunnel: ClaimedTunnel, key: string, usage: () => TunnelUsage): void {
    this.#closed.delete(tunnel.id)
    const current = this.#tunnels.get(tunnel.id)
    // A client that joins a TCP tunnel gets the port of that tunnel instead of the one it claimed.
    if (current?.tunnel.url === tunnel.url) current.usage = usage
    else this.#tunnels.set(tunnel.id, newEntry(tunnel, key, usage))
  }

  /** Call this also after a claim that was rejected or got no response. */
  closed(id: string): void {
    this.#tunnels.delete(id)
    this.#closed.add(id)
    if (this.#closed.size > CLOSED_MAX) this.resync()
  }

  closeAll(): void {
    for (const id of [...this.#tunnels.keys()]) this.closed(id)
  }

  /** Starts again with a snapshot: the control plane has lost what it acknowledged. */
  resync(): void {
    this.#resyncs += 1
    this.#previous = 0
    this.#closed.clear()
    for (const entry of this.#tunnels.values()) {
      entry.acknowledged = undefined
      entry.isGrantRequired = false
    }
  }

  /** Tunnels that wait for a grant, up to a limit. */
  ungranted(): UngrantedTunnel[] {
    return this.#tunnels
      .values()
      .filter(({ isGrantRequired }) => isGrantRequired)
      .take(GRANTS_MAX)
      .toArray()
  }

  /** Without `withUsage`, tunnels that only have carried traffic are left to a later sync. */
  next(withUsage = true): NextSync {
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
      else if (withUsage && !isEqual(usage, entry.acknowledged)) changed.push([entry, usage])
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
        changed: batch.map(([entry, usage]) => ({
          ...entry.tunnel,
          ...usage,
          ...(!entry.usage && { isClaiming: true }),
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

  /** Moves the tunnel to the end, so that tunnels take turns if there are more than fit into a sync. */
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

const isEqual = (usage: TunnelUsage, other: TunnelUsage) =>
  usage.requests === other.requests &&
  usage.bytesIn === other.bytesIn &&
  usage.bytesOut === other.bytesOut &&
  usage.streams === other.streams
