// The peers and locations of a cluster, as the control plane's stream has last reported them. They stay as
// they are while the stream is interrupted. To hold a million locations in memory, edges have numbers here: a
// host has the number of its edge, or a list if it is open at several.
import { safeCallback } from '../safe-callback.ts'
import type { Cluster, Peer } from './types.ts'

/** Approximate number of locations in an exported event. */
const EXPORTED_LOCATIONS = 1_000

type EventName = 'peers' | 'locations'

type Edges = number | readonly number[]

interface Locations {
  readonly hosts: Map<string, Edges>
  /** TCP tunnels only. */
  readonly ports: Map<string, number>
}

const noLocations = (): Locations => ({ hosts: new Map(), ports: new Map() })

export class ClusterState implements Cluster {
  edgeId: string | undefined
  /** The position of the last locations that were applied; undefined before the first list is complete. */
  position: string | undefined
  #peers = new Map<string, Peer>()
  /** A list of which only a part has arrived. */
  #newPeers: Map<string, Peer> | undefined
  #locations = noLocations()
  #newLocations: Locations | undefined
  readonly #edgeIds: string[] = []
  readonly #edgeNumbers = new Map<string, number>()
  readonly #peersListeners: (() => void)[] = []
  readonly #eventListeners: ((event: EventName, data: string) => void)[] = []
  readonly #locationsListeners: ((hosts: readonly string[]) => void)[] = []
  readonly #revokedListeners: ((hash: string) => void)[] = []

  get isComplete(): boolean {
    return this.position !== undefined
  }

  findEdges(host: string): readonly string[] {
    return toList(this.#locations.hosts.get(host))
      .map((edge) => this.#edgeIds[edge] as string)
      .filter((id) => id !== this.edgeId && this.#peers.has(id))
  }

  tcpPort(host: string): number | undefined {
    return this.#locations.ports.get(host)
  }

  tcpHosts(): Iterable<string> {
    return this.#locations.ports.keys()
  }

  peer(id: string): Peer | undefined {
    return this.#peers.get(id)
  }

  onPeers(listener: () => void): void {
    this.#peersListeners.push(safeCallback(listener))
  }

  onLocations(listener: (hosts: readonly string[]) => void): void {
    this.#locationsListeners.push(safeCallback(listener))
  }

  /** Calls the listener with each event, before it is applied. */
  onEvent(listener: (event: EventName, data: string) => void): void {
    this.#eventListeners.push(safeCallback(listener))
  }

  /** The events by which another process gets the same state. */
  *export(): Iterable<[event: EventName, data: string]> {
    if (this.edgeId === undefined) return
    const peers = Array.from(this.#peers.values(), ({ id, address, secrets }) => ({
      ...{ id, address },
      secrets: secrets.map((secret) => Buffer.from(secret).toString('base64url')),
    }))
    yield [
      'peers',
      JSON.stringify({ edge: this.edgeId, reset: true, peers, removed: [] } satisfies PeersData),
    ]
    if (this.position === undefined) return
    const { hosts, ports } = this.#locations
    let open: LocationsData['open'] = []
    yield ['locations', JSON.stringify({ reset: true, open, closed: [] } satisfies LocationsData)]
    for (const [host, edges] of hosts) {
      const port = ports.get(host)
      for (const edge of toList(edges)) {
        const id = this.#edgeIds[edge] as string
        open.push(port === undefined ? [host, id] : [host, id, port])
      }
      if (open.length < EXPORTED_LOCATIONS) continue
      yield ['locations', JSON.stringify({ open, closed: [] } satisfies LocationsData)]
      open = []
    }
    const { position } = this
    yield ['locations', JSON.stringify({ open, closed: [], position } satisfies LocationsData)]
  }

  onRevoked(listener: (hash: string) => void): void {
    this.#revokedListeners.push(safeCallback(listener))
  }

  revoked(hash: string): void {
    for (const listener of this.#revokedListeners) listener(hash)
  }

  /** Forgets lists that were not complete when the stream ended. */
  onStreamStart(): void {
    this.#newPeers = undefined
    this.#newLocations = undefined
  }

  /** Applies the data of an event `peers`. */
  applyPeers(text: string): void {
    for (const listener of this.#eventListeners) listener('peers', text)
    const { edge, reset, more, peers, removed } = JSON.parse(text) as PeersData
    this.edgeId = edge
    if (reset) this.#newPeers = new Map()
    const target = this.#newPeers ?? this.#peers
    for (const id of removed) target.delete(id)
    for (const { id, address, secrets } of peers)
      target.set(id, { id, address, secrets: secrets.map((secret) => Buffer.from(secret, 'base64url')) })
    if (more) return
    this.#peers = target
    this.#newPeers = undefined
    for (const listener of this.#peersListeners) listener()
  }

  /** Applies the data of an event `locations`. */
  applyLocations(text: string): void {
    for (const listener of this.#eventListeners) listener('locations', text)
    const { position, reset, open, closed } = JSON.parse(text) as LocationsData
    if (reset) this.#newLocations = noLocations()
    const target = this.#newLocations ?? this.#locations
    for (const [host, edge] of closed) removeEdge(target, host, this.#numberEdge(edge))
    for (const [host, edge, port] of open) addEdge(target, host, this.#numberEdge(edge), port)
    if (position === undefined) return
    this.position = position
    const previous = this.#locations
    this.#locations = target
    this.#newLocations = undefined
    const changed =
      target === previous ? [...closed, ...open].map(([host]) => host) : findDifferences(previous, target)
    if (changed.length > 0) for (const listener of this.#locationsListeners) listener(changed)
  }

  #numberEdge(id: string): number {
    const known = this.#edgeNumbers.get(id)
    if (known !== undefined) return known
    this.#edgeNumbers.set(id, this.#edgeIds.length)
    return this.#edgeIds.push(id) - 1
  }
}

interface PeersData {
  edge: string
  reset?: true
  more?: true
  peers: { id: string; address: string; secrets: string[] }[]
  removed: string[]
}

interface LocationsData {
  position?: string
  reset?: true
  open: [host: string, edge: string, port?: number][]
  closed: [host: string, edge: string][]
}

const toList = (edges: Edges | undefined): readonly number[] =>
  edges === undefined ? [] : typeof edges === 'number' ? [edges] : edges

function addEdge({ hosts, ports }: Locations, host: string, edge: number, port: number | undefined): void {
  const edges = toList(hosts.get(host))
  if (!edges.includes(edge)) hosts.set(host, edges.length === 0 ? edge : [...edges, edge])
  if (port === undefined) ports.delete(host)
  else ports.set(host, port)
}

function removeEdge({ hosts, ports }: Locations, host: string, edge: number): void {
  const [first, ...others] = toList(hosts.get(host)).filter((each) => each !== edge)
  if (first !== undefined) hosts.set(host, others.length === 0 ? first : [first, ...others])
  else {
    hosts.delete(host)
    ports.delete(host)
  }
}

function findDifferences(before: Locations, after: Locations): string[] {
  const describe = ({ hosts, ports }: Locations, host: string) => `${hosts.get(host)} ${ports.get(host)}`
  const changed: string[] = []
  for (const host of before.hosts.keys()) if (!after.hosts.has(host)) changed.push(host)
  for (const host of after.hosts.keys())
    if (describe(before, host) !== describe(after, host)) changed.push(host)
  return changed
}
