// Listeners of TCP tunnels, of this edge and of its peers, each on the port of its name, which the control
// plane assigns. Without a control plane, this edge does.
import type { Socket } from 'node:net'
import type { Cluster } from '../../edge-sdk/index.ts'
import { PORT_RENEWAL_MS } from '../../lib/net/tcp-ports.ts'
import { NO_PORT_GRANTED, portUnavailable, type Rejection } from '../admission/rejections.ts'
import { type TcpListener, TcpListeners } from './listeners.ts'
import type { LocalPorts } from './local-ports.ts'
import { RemotePorts } from './remote-ports.ts'

export interface TcpTunnelsOptions {
  /** Assigns ports without a control plane. */
  readonly localPorts: LocalPorts | undefined
  /** Other edges, whose ports are opened here too; undefined if this edge does not forward. */
  readonly cluster: Cluster | undefined
  /** The address to listen on. */
  readonly address: string
  onConnection(host: string, socket: Socket): void
  /** The port of a tunnel cannot be listened on. */
  onPortUnavailable(host: string, port: number, reason: string): void
}

interface TcpTunnel {
  readonly workspace: string
  readonly name: string
  readonly host: string
}

export class TcpTunnels {
  readonly #options: TcpTunnelsOptions
  readonly #listeners: TcpListeners
  readonly #remotePorts: RemotePorts | undefined
  readonly #renewal: NodeJS.Timeout | undefined

  constructor(options: TcpTunnelsOptions) {
    const { localPorts, cluster, address, onConnection } = options
    this.#options = options
    this.#listeners = new TcpListeners(address, onConnection)
    this.#remotePorts = cluster && new RemotePorts({ ...options, cluster, listeners: this.#listeners })
    // Errors are ignored: the next tunnel that is opened writes the same file, and reports its error.
    const renew = () => localPorts?.renew(this.#listeners.ports()).catch(() => {})
    this.#renewal = localPorts && setInterval(renew, PORT_RENEWAL_MS).unref()
  }

  /** `grantedPort` is the port that the control plane has assigned. */
  async listen({ workspace, name, host }: TcpTunnel, grantedPort?: number): Promise<TcpListener | Rejection> {
    const { localPorts, onPortUnavailable } = this.#options
    const port = localPorts ? await localPorts.assign(workspace, name, this.#listeners.ports()) : grantedPort
    if (typeof port !== 'number') return port ?? NO_PORT_GRANTED
    const listener = await this.#listeners.listen(host, port)
    if (typeof listener !== 'string') return listener
    onPortUnavailable(host, port, listener)
    return portUnavailable(port, listener)
  }

  /** Stops accepting connections. Open connections continue. */
  drain(): void {
    clearInterval(this.#renewal)
    this.#remotePorts?.stop()
    this.#listeners.close()
  }
}
