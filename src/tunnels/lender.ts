// Lends the connections of a tunnel to requests, each to one at a time, first come first served. pipenet's agent brings new
// ones; one that has become free goes to whoever has waited longest, which pipenet, and Node, would not see to.
import type { ClientRequest } from 'node:http'
import type { Socket } from 'node:net'
import { TunnelAgent, type TunnelServer } from 'pipenet/server'

/** As many connections of one tunnel; each carries one request at a time, or one WebSocket. */
export const CONNECTIONS_MAX = 100
/** As many that are free are kept for the next request. */
const FREE_MAX = 10

/** What Node's client offers to agents, and its types leave out. */
type Borrower = ClientRequest & { onSocket(socket: Socket): void }

export class Lender extends TunnelAgent {
  readonly #waiting: Borrower[] = []
  readonly #free = new Set<Socket>()
  /** How many new connections pipenet was asked for and has not brought yet. */
  #asked = 0

  constructor(secret: string, door: TunnelServer) {
    super({ clientId: secret, maxTcpSockets: CONNECTIONS_MAX, tunnelServer: door })
  }

  /** Called by Node with each request that is to be sent. */
  addRequest(request: Borrower): void {
    this.#waiting.push(request)
    const [free] = this.#free
    if (free) {
      this.#free.delete(free)
      this.#lend(free)
    }
    this.#askForMore()
  }

  /** As long as there is one that nobody else waits for, it comes at once; otherwise, when the other end has made one. */
  #askForMore(): void {
    while (this.#asked < this.#waiting.length) {
      this.#asked += 1
      this.createConnection({}, (error, socket) => {
        this.#asked -= 1
        if (!error) this.#welcome(socket as Socket)
      })
    }
  }

  #welcome(socket: Socket): void {
    // Said by Node when an answer is over, and the connection can be used again.
    socket.on('free', () => this.#lend(socket))
    socket.once('close', () => this.#free.delete(socket))
    this.#lend(socket)
    // It may have been gone when it came.
    this.#askForMore()
  }

  #lend(socket: Socket): void {
    if (socket.destroyed || !socket.writable) return
    let next = this.#waiting.shift()
    while (next?.destroyed) next = this.#waiting.shift()
    if (next) next.onSocket(socket)
    else if (this.#free.size < FREE_MAX) this.#free.add(socket)
    else socket.destroy()
  }
}
