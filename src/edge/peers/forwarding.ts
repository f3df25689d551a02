// Forwarding between the edges of a cluster: requests for tunnels whose clients are connected to other edges,
// and requests that other edges forward to the clients of this one.
import type { Cluster } from '../../edge-sdk/index.ts'
import type { ListenAddress } from '../../lib/net/listen-error.ts'
import type { Tunnel } from '../tunnel.ts'
import type { TunnelFactory } from '../tunnel-factory.ts'
import { listenForPeers, type PeerListener } from './listener.ts'
import { RemoteTunnels } from './remote-tunnels.ts'
import { type ServingOptions, ServingSession } from './serving-session.ts'

export interface PeersOptions extends ServingOptions {
  readonly cluster: Cluster
  readonly listen: ListenAddress
  readonly factory: TunnelFactory
}

export class Peers {
  readonly tunnels: RemoteTunnels
  readonly #options: PeersOptions
  /** Sessions that other edges have opened, by edge. */
  readonly #serving = new Map<string, ServingSession>()
  #listener: PeerListener | undefined

  constructor(options: PeersOptions) {
    const { cluster } = options
    this.#options = options
    this.tunnels = new RemoteTunnels(options)
    cluster.onPeers(() => {
      this.tunnels.onPeersChanged()
      for (const [id, session] of this.#serving) if (!cluster.peer(id)) session.close()
    })
    cluster.onLocations((hosts) => this.tunnels.onLocationsChanged(hosts))
  }

  /** Resolves with the port. */
  async listen(): Promise<number> {
    const { cluster, listen } = this.#options
    this.#listener = await listenForPeers(listen, cluster, (id, socket) => {
      const before = this.#serving.get(id)
      const session = new ServingSession(socket, {
        ...this.#options,
        onClosed: () => {
          if (this.#serving.get(id) === session) this.#serving.delete(id)
        },
      })
      this.#serving.set(id, session)
      // A peer has one connection. It has lost the one before, or was restarted.
      before?.close()
    })
    return this.#listener.address.port
  }

  /** Connections from other edges, and to them. */
  get connections(): { in: number; out: number } {
    return { in: this.#serving.size, out: this.tunnels.connectedPeers }
  }

  /** Streams of other edges that are connected to clients of this one. */
  get forwarded(): number {
    return this.#serving.values().reduce((sum, { forwarded }) => sum + forwarded, 0)
  }

  /** A tunnel of this edge was opened, closed or changed. */
  onTunnelChanged({ address }: Tunnel): void {
    for (const session of this.#serving.values()) session.onTunnelChanged(address.host)
  }

  onQuotaChanged(workspace: string): void {
    for (const session of this.#serving.values()) session.onQuotaChanged(workspace)
  }

  close(): void {
    this.#listener?.close()
    this.tunnels.close()
    for (const session of this.#serving.values()) session.close()
  }
}
