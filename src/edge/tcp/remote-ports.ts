// Ports of TCP tunnels whose clients are connected to other edges of the group: this edge listens on them,
// too, while one of these edges is a peer.
import type { Cluster } from '../../edge-sdk/index.ts'
import type { TcpListener, TcpListeners } from './listeners.ts'

/** The program that uses a port may be stopped. */
const RETRY_MS = 10_000

interface RemotePort {
  readonly port: number
  /** Undefined until it listens. */
  listener: TcpListener | undefined
}

interface RemotePortsOptions {
  readonly cluster: Cluster
  readonly listeners: TcpListeners
  onPortUnavailable(host: string, port: number, reason: string): void
}

export class RemotePorts {
  readonly #options: RemotePortsOptions
  readonly #byHost = new Map<string, RemotePort>()
  /** Hosts whose port cannot be listened on. */
  readonly #unavailable = new Map<string, number>()
  readonly #retry: NodeJS.Timeout
  #isStopped = false

  constructor(options: RemotePortsOptions) {
    const { cluster } = options
    this.#options = options
    cluster.onLocations((hosts) => this.#update(hosts))
    cluster.onPeers(() => this.#update(new Set([...cluster.tcpHosts(), ...this.#byHost.keys()])))
    this.#retry = setInterval(() => this.#update([...this.#unavailable.keys()]), RETRY_MS).unref()
    this.#update([...cluster.tcpHosts()])
  }

  /** Ports stay as they are from now on. */
  stop(): void {
    this.#isStopped = true
    clearInterval(this.#retry)
  }

  /** Closes first, because a port may belong to another host by now. */
  #update(hosts: Iterable<string>): void {
    if (this.#isStopped) return
    for (const host of hosts) {
      const port = this.#findPort(host)
      if (this.#unavailable.get(host) !== port) this.#unavailable.delete(host)
      const open = this.#byHost.get(host)
      if (!open || open.port === port) continue
      this.#byHost.delete(host)
      open.listener?.close()
    }
    for (const host of hosts) {
      const port = this.#findPort(host)
      if (port !== undefined && !this.#byHost.has(host)) void this.#listen(host, port)
    }
  }

  #findPort(host: string): number | undefined {
    const { cluster } = this.#options
    const port = cluster.tcpPort(host)
    return port !== undefined && cluster.findEdges(host).length > 0 ? port : undefined
  }

  async #listen(host: string, port: number): Promise<void> {
    const { listeners, onPortUnavailable } = this.#options
    const open: RemotePort = { port, listener: undefined }
    this.#byHost.set(host, open)
    const listener = await listeners.listen(host, port)
    const isWanted = this.#byHost.get(host) === open
    if (typeof listener !== 'string') {
      this.#unavailable.delete(host)
      if (isWanted) open.listener = listener
      else listener.close()
      return
    }
    if (!isWanted) return
    this.#byHost.delete(host)
    if (!this.#unavailable.has(host)) onPortUnavailable(host, port, listener)
    this.#unavailable.set(host, port)
  }
}
