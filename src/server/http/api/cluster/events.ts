// Events of the change stream about the group of an edge: its peers, and where names are open.
import { randomInt } from 'node:crypto'
import { MINUTE_MS } from '../../../../lib/time.ts'
import type {
  ClusterFollower,
  GroupSubscription,
  LocationEntry,
  LocationPosition,
  PeerAddresses,
} from '../../../domain/cluster/follower.ts'
import type { PeerSecrets } from '../../../domain/cluster/peer-secrets.ts'
import type { EdgeRef } from '../../../verification/edge-workspaces.ts'

/** Peers in one event. */
const PEERS_MAX = 200
/** All peers are sent again after a random time up to this: secrets change every hour. */
const REFRESH_MS = 40 * MINUTE_MS
/** A stream whose edge reads so slowly that more waits is ended. */
const PENDING_CHARS_MAX = 8 * 1024 * 1024

export interface ClusterServices {
  follower: ClusterFollower
  secrets: PeerSecrets
  tunnelDomain: string
  databaseTime: () => number
}

interface ClusterEventsOptions {
  edge: EdgeRef
  /** The position of the edge; undefined if it has none. */
  after: LocationPosition | undefined
  /** An event is ready. */
  onReady: () => void
  /** The stream cannot continue, and the edge has to reconnect. */
  onEnd: () => void
}

export class ClusterEvents {
  readonly #services: ClusterServices
  readonly #options: ClusterEventsOptions
  readonly #subscription: GroupSubscription
  /** What has to be sent before `#pending`: entries that were missed, or all locations. */
  #initial: AsyncIterator<string> | undefined
  readonly #pending: string[] = []
  #pendingChars = 0
  /** As the edge knows them; undefined if they have to be sent in full. */
  #sentPeers: PeerAddresses | undefined
  readonly #peerEvents: string[] = []
  readonly #refresh: NodeJS.Timeout

  static async open(services: ClusterServices, options: ClusterEventsOptions): Promise<ClusterEvents> {
    // The subscription may report something before it is returned.
    let events: ClusterEvents | undefined
    const early: LocationEntry[] = []
    const subscription = await services.follower.subscribe(options.edge.group, {
      onLocations: (entry) => (events ? events.#add(entry) : early.push(entry)),
      onReset: options.onEnd,
      onPeers() {
        if (events) events.#updatePeers()
      },
    })
    events = new ClusterEvents(services, options, subscription)
    for (const entry of early) events.#add(entry)
    return events
  }

  private constructor(
    services: ClusterServices,
    options: ClusterEventsOptions,
    subscription: GroupSubscription,
  ) {
    this.#services = services
    this.#options = options
    this.#subscription = subscription
    this.#initial = this.#catchUp()
    this.#updatePeers()
    const refresh = () => {
      this.#sentPeers = undefined
      this.#updatePeers()
    }
    this.#refresh = setInterval(refresh, randomInt(REFRESH_MS / 2, REFRESH_MS)).unref()
  }

  /** Whether `next` has an event. */
  get isReady(): boolean {
    return this.#initial !== undefined || this.#peerEvents.length > 0 || this.#pending.length > 0
  }

  /** The next event; empty if there is none after all. */
  async next(): Promise<string> {
    const peers = this.#peerEvents.shift()
    if (peers !== undefined) return peers
    if (this.#initial) {
      const { value, done } = await this.#initial.next()
      if (!done) return value
      this.#initial = undefined
    }
    const event = this.#pending.shift() ?? ''
    this.#pendingChars -= event.length
    return event
  }

  close(): void {
    clearInterval(this.#refresh)
    this.#subscription.unsubscribe()
    this.#pending.length = 0
  }

  #add(entry: LocationEntry): void {
    const event = renderEntry(entry, this.#services.tunnelDomain)
    this.#pending.push(event)
    this.#pendingChars += event.length
    if (this.#pendingChars > PENDING_CHARS_MAX) this.#options.onEnd()
    this.#options.onReady()
  }

  /** The entries that the edge has missed or, if these are not available, all locations. */
  async *#catchUp(): AsyncGenerator<string> {
    const { follower, tunnelDomain } = this.#services
    const { edge, after } = this.#options
    const { position } = this.#subscription
    const missed = after && (await follower.backlog(edge.group, after, position))
    if (missed) {
      for (const entry of missed) yield renderEntry(entry, tunnelDomain)
      return
    }
    let reset = true
    for await (const page of follower.snapshot(edge.group)) {
      yield locationsEvent({ ...(reset && { reset }), open: toHosts(page, tunnelDomain), closed: [] })
      reset = false
    }
    yield locationsEvent({
      position: formatPosition(position),
      ...(reset && { reset }),
      open: [],
      closed: [],
    })
  }

  #updatePeers(): void {
    const { secrets, databaseTime } = this.#services
    const { id, group } = this.#options.edge
    const current = this.#subscription.peers()
    const sent = this.#sentPeers
    const changed = [...current].filter(([peer, address]) => peer !== id && sent?.get(peer) !== address)
    const removed = [...(sent?.keys() ?? [])].filter((peer) => peer !== id && !current.has(peer))
    const now = databaseTime()
    for (let start = 0; start === 0 || start < changed.length; start += PEERS_MAX) {
      const peers = changed
        .slice(start, start + PEERS_MAX)
        .map(([peer, address]) => ({ id: peer, address, secrets: secrets(group, [id, peer], now) }))
      const isFirst = start === 0
      if (isFirst && sent && peers.length + removed.length === 0) break
      this.#peerEvents.push(
        dataEvent('peers', {
          edge: id,
          ...(isFirst && !sent && { reset: true }),
          ...(start + PEERS_MAX < changed.length && { more: true }),
          peers,
          removed: isFirst ? removed : [],
        }),
      )
    }
    this.#sentPeers = current
    this.#options.onReady()
  }
}

/** Rendered once for all streams of the group. */
const rendered = new WeakMap<LocationEntry, string>()

function renderEntry(entry: LocationEntry, tunnelDomain: string): string {
  const known = rendered.get(entry)
  if (known !== undefined) return known
  const event = locationsEvent({
    position: formatPosition(entry),
    open: toHosts(entry.opened, tunnelDomain),
    closed: toHosts(entry.closed, tunnelDomain),
  })
  rendered.set(entry, event)
  return event
}

const toHosts = (locations: LocationEntry['opened'], tunnelDomain: string) =>
  locations.map(([host, ...edgeAndPort]) => [`${host}.${tunnelDomain}`, ...edgeAndPort])

const locationsEvent = (data: object) => dataEvent('locations', data)

const dataEvent = (name: string, data: object) => `event: ${name}\ndata: ${JSON.stringify(data)}\n\n`

const formatPosition = ({ sequence, checksum }: LocationPosition) => `${sequence}-${checksum}`
