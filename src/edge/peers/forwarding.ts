// Forwarding between the edges of a cluster, or the workers of an edge: requests for tunnels whose clients
// are connected to others, and requests that others forward to the clients of this one.
import type { Cluster } from '../../edge-sdk/index.ts'
import type { Tunnel } from '../tunnel.ts'
import type { TunnelFactory } from '../tunnel-factory.ts'
import { RemoteTunnels } from './remote-tunnels.ts'
import { type ServingOptions, ServingSession } from './serving-session.ts'
import type { PeerTransport } from './transport.ts'

export interface PeersOptions extends ServingOptions {
  readonly cluster: Cluster
  readonly transport: PeerTransport
  readonly factory: TunnelFactory
}

/** Connections of one peer: it may have several workers, twice as many while they are restarted. */
const SESSIONS_PER_PEER_MAX = 128

export class Peers {
  readonly tunnels: RemoteTunnels
  readonly #options: PeersOptions
  /** Sessions that peers have opened, by peer; the oldest is the first. */
  readonly #serving = new Map<string, Set<ServingSession>>()
  #listener: { close(): void } | undefined

  constructor(options: PeersOptions) {
    const { cluster } = options
    this.#options = options
    this.tunnels = new RemoteTunnels(options)
    cluster.onPeers(() => {
      this.tunnels.onPeersChanged()
      for (const [id, sessions] of this.#serving)
        if (!cluster.peer(id)) for (const session of sessions) session.close()
    })
    cluster.onLocations((hosts) => this.tunnels.onLocationsChanged(hosts))
  }

  async listen(): Promise<void> {
    this.#listener = await this.#options.transport.listen((id, socket) => {
      const sessions = this.#serving.get(id) ?? new Set()
      this.#serving.set(id, sessions)
      const session = new ServingSession(socket, {
        ...this.#options,
        onClosed: () => {
          if (sessions.delete(session) && sessions.size === 0) this.#serving.delete(id)
        },
      })
      sessions.add(session)
      const [oldest] = sessions
      if (sessions.size > SESSIONS_PER_PEER_MAX) oldest?.close()
    })
  }

  *#sessions(): Iterable<ServingSession> {
    for (const sessions of this.#serving.values()) yield* sessions
  }

  /** Connections from other edges, and to them. */
  get connections(): { in: number; out: number } {
    return { in: [...this.#sessions()].length, out: this.tunnels.connectedPeers }
  }

  /** Streams of other edges that are connected to clients of this one. */
  get forwarded(): number {
    let sum = 0
    for (const { forwarded } of this.#sessions()) sum += forwarded
    return sum
  }

  /** A tunnel of this edge was opened, closed or changed. */
  onTunnelChanged({ address }: Tunnel): void {
    for (const session of this.#sessions()) session.onTunnelChanged(address.host)
  }

  onQuotaChanged(workspace: string): void {
    for (const session of this.#sessions()) session.onQuotaChanged(workspace)
  }

  close(): void {
    this.#listener?.close()
    this.tunnels.close()
    for (const session of this.#sessions()) session.close()
  }
}
