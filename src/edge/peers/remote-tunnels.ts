// Tunnels whose clients are connected to other edges: found by the locations of the cluster, described by
// those edges, and cached while they are used. A host has one tunnel for each edge that has clients of it,
// because changed access rules reach each edge at a different time.
import type { Cluster } from '../../edge-sdk/index.ts'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { MINUTE_MS } from '../../lib/time.ts'
import type { Traffic } from '../traffic.ts'
import type { TunnelFactory } from '../tunnels/factory.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'
import { PeerLink } from './link.ts'
import type { Description } from './messages.ts'
import { RemoteClient } from './remote-client.ts'
import { DESCRIBED_HOSTS_MAX } from './serving-session.ts'
import type { PeerTransport } from './transport.ts'

/** A host that got no request for this long is removed. */
const UNUSED_MS = 5 * MINUTE_MS
/** An edge replaces its workers one at a time. */
const REPLACED_PER_PEER_MAX = 4
/** How many edges are asked about a host at once. */
const EDGES_MAX = 4

const REVOKED_MAX = 10_000

/** The tunnel of a host at one peer. */
interface RemoteTunnel {
  readonly link: PeerLink
  readonly tunnel: Tunnel<RemoteClient>
  revision: number
  /** The peer has rejected a stream: the tunnel is not used until the peer has described it again. */
  isStale: boolean
}

interface RemoteHost {
  readonly tunnels: Map<string, RemoteTunnel>
  lookup: Promise<Found> | undefined
  usedAt: number
}

/** The result of a lookup. `unreachable`: edges have clients of the host, but none of them responds. */
export type Found = Tunnel<RemoteClient> | 'unreachable' | undefined

type AnyTunnel = Tunnel<UpstreamClient>

export interface RemoteTunnelsOptions {
  readonly cluster: Cluster
  readonly transport: Pick<PeerTransport, 'connect'>
  readonly traffic: Pick<Traffic, 'mayCarry' | 'abortResponses'>
  readonly factory: TunnelFactory
  readonly pressure: { readonly isHigh: boolean }
}

export class RemoteTunnels {
  readonly #options: RemoteTunnelsOptions
  readonly #links = new Map<string, PeerLink>()
  /** Links that were replaced: their workers are stopping, and complete requests in progress. */
  readonly #replaced = new Set<PeerLink>()
  readonly #hosts = new Map<string, RemoteHost>()
  /** Removed tunnels whose requests are still in progress. */
  readonly #closing = new Set<Tunnel<RemoteClient>>()
  /**
   * Hashes of revoked keys: the edge of the client may learn it later, and describe the client until then.
   */
  readonly #revoked = new BoundedMap<string, true>(REVOKED_MAX)
  readonly #sweep: NodeJS.Timeout

  constructor(options: RemoteTunnelsOptions) {
    this.#options = options
    this.#sweep = setInterval(() => this.#removeUnused(), MINUTE_MS).unref()
  }

  /** A tunnel of the host; after a failure, at another edge than that of `failed` if there is one. */
  find(host: string, failed?: AnyTunnel): Found | Promise<Found> {
    const known = this.#hosts.get(host)
    const tunnel = known && pick(known, failed)
    if (tunnel && !(tunnel.isSilent && this.#edgesToAsk(host, known).length > 0)) {
      known.usedAt = performance.now()
      return tunnel
    }
    const edges = this.#edgesToAsk(host, known)
    if (edges.length === 0) return known && pick(known)
    const entry = known ?? this.#addHost(host)
    entry.lookup ??= this.#lookUp(host, entry, edges).finally(() => {
      entry.lookup = undefined
    })
    return entry.lookup
  }

  /** Whether a request that failed at a tunnel may be retried at another edge. */
  hasOther(host: string, failed: AnyTunnel): boolean {
    const known = this.#hosts.get(host)
    return (known && pick(known, failed)) !== undefined || this.#edgesToAsk(host, known).length > 0
  }

  /** The edge of the tunnel has rejected a stream. */
  onMoved(moved: AnyTunnel): void {
    for (const remote of this.#hosts.get(moved.address.host)?.tunnels.values() ?? [])
      if (remote.tunnel === moved) remote.isStale = true
  }

  get connectedPeers(): number {
    return this.#links
      .values()
      .filter(({ isConnected }) => isConnected)
      .toArray().length
  }

  /** This edge passes on nothing for the key, whether or not the edge of its clients does. */
  onRevoked(hash: string): void {
    this.#revoked.set(hash, true)
    for (const { tunnels } of this.#hosts.values())
      for (const { tunnel } of tunnels.values())
        for (const client of tunnel.clients) if (client.keyHash === hash) removeClient(tunnel, client)
    this.#options.traffic.abortResponses(
      (client) => client instanceof RemoteClient && client.keyHash === hash,
    )
  }

  onPeersChanged(): void {
    for (const link of [...this.#links.values(), ...this.#replaced]) {
      if (this.#options.cluster.peer(link.peerId)) continue
      this.#links.delete(link.peerId)
      link.close()
    }
  }

  onLocationsChanged(hosts: readonly string[]): void {
    for (const host of hosts) {
      const known = this.#hosts.get(host)
      if (!known) continue
      const edges = new Set(this.#options.cluster.findEdges(host))
      for (const [id, remote] of known.tunnels) if (!edges.has(id)) this.#remove(host, known, remote)
      // The tunnels at further edges are described now, so that they can be used at once when one fails.
      for (const id of this.#edgesToAsk(host, known))
        this.#link(id)
          .describe(host)
          .catch(() => {})
    }
  }

  close(): void {
    clearInterval(this.#sweep)
    for (const link of [...this.#links.values(), ...this.#replaced]) link.close()
  }

  /** Peers that have a client of the host, but no tunnel here that requests may use. */
  #edgesToAsk(host: string, known: RemoteHost | undefined): string[] {
    const { cluster } = this.#options
    return cluster
      .findEdges(host)
      .filter((id) => id !== cluster.edgeId && cluster.peer(id) && !isUsable(known?.tunnels.get(id)))
      .slice(0, EDGES_MAX)
  }

  /** Resolves as soon as one edge has described a tunnel that can be used. */
  async #lookUp(host: string, known: RemoteHost, edges: readonly string[]): Promise<Found> {
    const answers = edges.map(async (id) => {
      await this.#link(id).describe(host)
      if (!isUsable(known.tunnels.get(id))) throw new NotThere()
    })
    const found = await Promise.any(answers).then(
      () => pick(known),
      ({ errors }: AggregateError) =>
        pick(known) ?? (errors.some((error) => !(error instanceof NotThere)) ? 'unreachable' : undefined),
    )
    if (known.tunnels.size === 0 && this.#hosts.get(host) === known) this.#hosts.delete(host)
    return found
  }

  #link(id: string): PeerLink {
    const existing = this.#links.get(id)
    if (existing) return existing
    const link = new PeerLink(id, {
      ...this.#options,
      onTransfer: this.#options.traffic.mayCarry,
      onEnd: (_link, { keyHash, workspace }) =>
        this.#options.traffic.abortResponses(
          (client) =>
            client instanceof RemoteClient &&
            client.link === link &&
            (client.keyHash === keyHash || client.workspace === workspace),
        ),
      onTunnel: (_link, description) => this.#onTunnel(link, description),
      onGone: (_link, host) => {
        const known = this.#hosts.get(host)
        const remote = known?.tunnels.get(id)
        if (remote?.link === link) this.#remove(host, known as RemoteHost, remote)
      },
      onReplaced: () => this.#replace(link),
      onClosed: () => this.#onLinkClosed(link),
    })
    this.#links.set(id, link)
    return link
  }

  /** What it has described stays in use until another worker of the peer has described it. */
  #replace(link: PeerLink): void {
    if (this.#links.get(link.peerId) !== link) return
    this.#links.delete(link.peerId)
    const others = [...this.#replaced].filter(({ peerId }) => peerId === link.peerId)
    if (others.length >= REPLACED_PER_PEER_MAX) others[0]?.close()
    this.#replaced.add(link)
    for (const [host, { tunnels, lookup }] of this.#hosts)
      if (lookup || tunnels.get(link.peerId)?.link === link)
        this.#link(link.peerId)
          .describe(host)
          .catch(() => {})
  }

  #addHost(host: string): RemoteHost {
    if (this.#hosts.size >= DESCRIBED_HOSTS_MAX) this.#removeOldest()
    const added = { tunnels: new Map(), lookup: undefined, usedAt: performance.now() }
    this.#hosts.set(host, added)
    return added
  }

  #onTunnel(link: PeerLink, description: Description): void {
    const { host, revision, clientRules, nameRules } = description
    const known = this.#hosts.get(host)
    // The host was removed meanwhile, or the control plane has not granted the name to the peer.
    const isLocated = this.#options.cluster.findEdges(host).includes(link.peerId)
    if (!known || !isLocated) return void link.forget(host)
    const existing = known.tunnels.get(link.peerId)
    // A newer link has described the tunnel: only requests in progress still use this one.
    if (existing && existing.link !== link && this.#replaced.has(link)) {
      for (const tunnel of this.#closing) if (tunnel.address.host === host) tunnel.requests.retryReused()
      return void link.applied(host, revision)
    }
    const isSame =
      existing?.link === link &&
      existing.tunnel.workspace === description.workspace &&
      existing.tunnel.type === description.type
    if (existing && !isSame) this.#remove(host, known, existing)
    const remote = isSame ? existing : this.#create(link, description)
    known.tunnels.set(link.peerId, remote)
    const { tunnel } = remote
    tunnel.access.clientRules = clientRules
    tunnel.access.setNameRules(nameRules)
    tunnel.quotaReachedUntil = description.quotaReachedUntil
    remote.isStale = false
    const isRevised = revision !== remote.revision
    remote.revision = revision
    if (isRevised) for (const client of tunnel.clients) client.setRevision(revision)
    setClients(remote, {
      ...description,
      clients: description.clients.filter(({ keyHash }) => !this.#revoked.has(keyHash)),
    })
    // The peer also waits if it had other rules before, which this edge has forgotten.
    if (!isSame) link.applied(host, revision)
    if (!isRevised) return
    // Requests on reused streams were authorized by earlier rules, and the peer cannot tell which.
    tunnel.requests.retryReused()
    link.applied(host, revision)
  }

  #create(link: PeerLink, description: Description): RemoteTunnel {
    const { host, name, url, type, revision } = description
    const address = { host, name, url, type }
    const tunnel = this.#options.factory.create<RemoteClient>({ ...description, address })
    return { link, tunnel, revision, isStale: false }
  }

  #remove(host: string, known: RemoteHost, { link, tunnel }: RemoteTunnel): void {
    if (known.tunnels.get(link.peerId)?.tunnel === tunnel) known.tunnels.delete(link.peerId)
    if (known.tunnels.size === 0 && !known.lookup) this.#hosts.delete(host)
    for (const client of tunnel.clients) client.drain()
    tunnel.clients.clear()
    if (tunnel.requests.size === 0) this.#options.factory.release(tunnel)
    else this.#closing.add(tunnel)
  }

  #onLinkClosed(link: PeerLink): void {
    this.#replaced.delete(link)
    for (const [host, known] of this.#hosts) {
      const remote = known.tunnels.get(link.peerId)
      if (remote?.link !== link) continue
      for (const client of remote.tunnel.clients) client.close()
      this.#remove(host, known, remote)
    }
  }

  #removeUnused(): void {
    for (const tunnel of this.#closing)
      if (tunnel.requests.size === 0 && this.#closing.delete(tunnel)) this.#options.factory.release(tunnel)
    const before = performance.now() - UNUSED_MS
    for (const [host, known] of this.#hosts)
      if (known.usedAt < before && !isBusy(known)) this.#forget(host, known)
  }

  #removeOldest(): void {
    let oldest: [string, RemoteHost] | undefined
    for (const entry of this.#hosts) if (!oldest || entry[1].usedAt < oldest[1].usedAt) oldest = entry
    if (oldest) this.#forget(...oldest)
  }

  #forget(host: string, known: RemoteHost): void {
    for (const remote of [...known.tunnels.values()]) {
      remote.link.forget(host)
      this.#remove(host, known, remote)
    }
    this.#hosts.delete(host)
  }
}

/** The edge has no client of the host: its location is out of date. */
class NotThere extends Error {}

const isUsable = (remote: RemoteTunnel | undefined): remote is RemoteTunnel =>
  remote !== undefined && !remote.isStale && remote.tunnel.isAvailable

const isBusy = ({ tunnels }: RemoteHost) => tunnels.values().some(({ tunnel }) => tunnel.requests.size > 0)

/** The tunnel with the fewest requests, other than `failed`; one that is silent only if there is no other. */
function pick({ tunnels }: RemoteHost, failed?: AnyTunnel): Tunnel<RemoteClient> | undefined {
  let picked: Tunnel<RemoteClient> | undefined
  for (const remote of tunnels.values()) {
    const { tunnel } = remote
    if (!isUsable(remote) || tunnel === failed) continue
    if (!picked || isBetter(tunnel, picked)) picked = tunnel
  }
  return picked
}

const isBetter = (tunnel: AnyTunnel, than: AnyTunnel) =>
  tunnel.isSilent === than.isSilent ? tunnel.requests.size < than.requests.size : than.isSilent

/** Adds new clients, and drains those that are gone. */
function setClients({ link, tunnel }: RemoteTunnel, description: Description): void {
  const before = new Map([...tunnel.clients].map((client) => [client.id, client]))
  for (const described of description.clients)
    if (!before.delete(described.id)) tunnel.clients.add(new RemoteClient(link, description, described))
  for (const client of before.values()) removeClient(tunnel, client)
}

function removeClient(tunnel: Tunnel<RemoteClient>, client: RemoteClient): void {
  tunnel.clients.delete(client)
  client.drain()
}
