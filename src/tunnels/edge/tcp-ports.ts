// The ports of TCP tunnels: a listener per tunnel, on a port of the configured range.
import { createServer, type Server, type Socket } from 'node:net'

const KEEP_ALIVE_MS = 15_000

export interface PortRange {
  readonly first: number
  readonly last: number
}

export interface TcpListener {
  readonly port: number
  close(): void
}

export class TcpPorts {
  readonly #address: string
  readonly #range: PortRange
  readonly #used = new Set<number>()
  /**
   * The host that had each port last, the latest use last: others get these ports only when no other is left.
   */
  readonly #lastHosts = new Map<number, string>()

  constructor(address: string, range: PortRange) {
    this.#address = address
    this.#range = range
  }

  /**
   * Listens on a free port; undefined if there is none. A host gets the same port each time, unless that is
   * in use, so that a tunnel keeps its port when it is opened again.
   */
  async listen(tunnelHost: string, onConnection: (socket: Socket) => void): Promise<TcpListener | undefined> {
    for (const port of this.#candidates(tunnelHost)) {
      if (this.#used.has(port)) continue
      this.#used.add(port)
      const server = createServer(
        { allowHalfOpen: true, noDelay: true, keepAlive: true, keepAliveInitialDelay: KEEP_ALIVE_MS },
        onConnection,
      )
      if (await isListening(server, port, this.#address)) return this.#listener(server, port, tunnelHost)
      this.#used.delete(port)
    }
    return undefined
  }

  #listener(server: Server, port: number, tunnelHost: string): TcpListener {
    this.#lastHosts.delete(port)
    this.#lastHosts.set(port, tunnelHost)
    return {
      port,
      close: () => {
        server.close()
        this.#used.delete(port)
      },
    }
  }

  *#candidates(tunnelHost: string): Generator<number> {
    const { first, last } = this.#range
    const count = last - first + 1
    const start = hashOf(tunnelHost) % count
    const ports = Array.from({ length: count }, (_, index) => first + ((start + index) % count))
    const isOwn = (port: number) => this.#lastHosts.get(port) === tunnelHost
    yield* ports.filter(isOwn)
    yield* ports.filter((port) => !this.#lastHosts.has(port))
    yield* [...this.#lastHosts.keys()].filter((port) => !isOwn(port))
  }
}

/** FNV-1a. */
function hashOf(text: string): number {
  let hash = 0x811c9dc5
  for (let index = 0; index < text.length; index += 1)
    hash = Math.imul(hash ^ text.charCodeAt(index), 0x01000193) >>> 0
  return hash
}

const isListening = (server: Server, port: number, host: string) =>
  new Promise<boolean>((resolve) => {
    // Also errors of later connections, which have no other listener.
    server.on('error', () => resolve(false))
    server.listen(port, host, () => resolve(true))
  })
