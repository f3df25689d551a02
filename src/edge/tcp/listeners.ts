// Listeners for the connections of TCP tunnels, each on the port that belongs to the name of the tunnel.
import { createServer, type Server, type Socket } from 'node:net'

const KEEP_ALIVE_MS = 15_000

export interface TcpListener {
  readonly port: number
  /** May be called again. */
  close(): void
}

interface SharedListener {
  readonly host: string
  readonly server: Server
  /** Undefined on success. */
  readonly failure: Promise<string | undefined>
  users: number
}

export class TcpListeners {
  readonly #address: string
  readonly #onConnection: (host: string, socket: Socket) => void
  readonly #byPort = new Map<number, SharedListener>()

  constructor(address: string, onConnection: (host: string, socket: Socket) => void) {
    this.#address = address
    this.#onConnection = onConnection
  }

  ports(): Iterable<number> {
    return this.#byPort.keys()
  }

  /**
   * Clients that open one tunnel at the same time share a listener. Resolves with the reason if the port
   * cannot be listened on.
   */
  async listen(host: string, port: number): Promise<TcpListener | string> {
    const shared = this.#byPort.get(port) ?? this.#start(host, port)
    if (shared.host !== host) return 'used by another tunnel'
    shared.users += 1
    const failure = await shared.failure
    if (failure !== undefined) return failure
    let isOpen = true
    return {
      port,
      close: () => {
        if (isOpen) this.#release(port, shared)
        isOpen = false
      },
    }
  }

  /** Stops accepting connections. Open connections continue. */
  close(): void {
    for (const { server } of this.#byPort.values()) server.close()
  }

  #start(host: string, port: number): SharedListener {
    const server = createServer(
      { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS },
      (socket) => this.#onConnection(host, socket),
    )
    const { promise: failure, resolve } = Promise.withResolvers<string | undefined>()
    // This also handles errors of later connections, which have no other listener.
    server.on('error', ({ message }) => {
      if (!server.listening) this.#byPort.delete(port)
      resolve(message)
    })
    server.listen(port, this.#address, () => resolve(undefined))
    const shared = { host, server, failure, users: 0 }
    this.#byPort.set(port, shared)
    return shared
  }

  #release(port: number, shared: SharedListener): void {
    shared.users -= 1
    if (shared.users > 0) return
    shared.server.close()
    this.#byPort.delete(port)
  }
}
