// Forwarding between the edges of a cluster, or the workers of an edge: requests for tunnels whose clients
// are connected to others, and requests that others forward to the clients of this one.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Cluster } from '../../edge-sdk/index.ts'
import type { Traffic } from '../traffic.ts'
import type { TunnelFactory } from '../tunnels/factory.ts'
import type { Subject } from './messages.ts'
import { RemoteTunnels, type RemoteTunnelsOptions } from './remote-tunnels.ts'
import { ENDED_WITHIN_MS, type ServingOptions, ServingSession } from './serving-session.ts'
import type { PeerTransport } from './transport.ts'

export interface PeersOptions extends ServingOptions, RemoteTunnelsOptions {
  readonly cluster: Cluster
  readonly transport: PeerTransport
  /** If a peer opens more connections, its oldest one is closed. */
  readonly sessionsPerPeerMax: number
  readonly traffic: Traffic
  readonly factory: TunnelFactory
}

export class Peers {
  readonly tunnels: RemoteTunnels
  readonly #options: PeersOptions
  /** Sessions that peers have opened, by peer; the oldest is the first. */
  readonly #serving = new Map<string, Set<ServingSession>>()
  #listener: { close(): void } | undefined
  /** When the last session was closed that had forwarded something. */
  #closedAt = Number.NEGATIVE_INFINITY

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
    cluster.onRevoked((hash) => this.tunnels.onRevoked(hash))
  }

  async listen(): Promise<void> {
    this.#listener = await this.#options.transport.listen((id, socket) => {
      const sessions = this.#serving.get(id) ?? new Set()
      this.#serving.set(id, sessions)
      const session = new ServingSession(socket, {
        ...this.#options,
        onClosed: () => {
          if (session.hasForwarded) this.#closedAt = performance.now()
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

  /**
   * Call it when the clients of a key or a workspace are closed. Resolves when no entry edge passes on what
   * came from them.
   */
  async end(subject: Subject): Promise<void> {
    const closedMs = performance.now() - this.#closedAt
    await Promise.all([
      ...Array.from(this.#sessions(), (session) => session.end(subject)),
      closedMs < ENDED_WITHIN_MS && sleep(ENDED_WITHIN_MS - closedMs),
    ])
  }

  /**
   * Other workers of this edge accept the connections of peers. This one serves them until they have moved.
   */
  sendElsewhere(): void {
    this.#listener?.close()
    for (const session of this.#sessions()) session.sendElsewhere()
  }

  close(): void {
    this.#listener?.close()
    this.tunnels.close()
    for (const session of this.#sessions()) session.close()
  }
}
