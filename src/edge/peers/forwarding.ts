// Forwarding between the edges of a cluster, or the workers of an edge: requests for tunnels whose clients
// are connected to others, and requests that others forward to the clients of this one.
import type { Cluster } from '../../edge-sdk/index.ts'
import type { TunnelFactory } from '../tunnel-factory.ts'
import { RemoteTunnels } from './remote-tunnels.ts'
import { type ServingOptions, ServingSession } from './serving-session.ts'
import type { PeerTransport } from './transport.ts'

export interface PeersOptions extends ServingOptions {
  readonly cluster: Cluster
  readonly transport: PeerTransport
  /** If a peer opens more connections, its oldest one is closed. */
  readonly sessionsPerPeerMax: number
  readonly factory: TunnelFactory
}

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
      if (sessions.size > this.#options.sessionsPerPeerMax) oldest?.close()
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
  onTunnelChanged(host: string): void {
    for (const session of this.#sessions()) session.onTunnelChanged(host)
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
