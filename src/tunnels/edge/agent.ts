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
type PendingRequest = ClientRequest & { onSocket(socket: Socket): void }

/** For whoever speaks on a connection without being asked: it would be taken for the answer to the next request. */
export function hangUp(this: Socket): void {
  this.destroy()
}

export class TunnelSocketAgent extends TunnelAgent {
  readonly #waiting = new Set<PendingRequest>()
  readonly #free = new Set<Socket>()
  /** How many new connections pipenet was asked for and has not brought yet. */
  #asked = 0

  constructor(secret: string, door: TunnelServer) {
    super({ clientId: secret, maxTcpSockets: CONNECTIONS_MAX, tunnelServer: door })
  }

  /** Called by Node with each request that is to be sent. */
  addRequest(request: PendingRequest): void {
    this.#waiting.add(request)
    // Nothing is said when somebody leaves who waits; at a tunnel that serves nobody, they could become many.
    if (this.#waiting.size > 2 * CONNECTIONS_MAX) this.#forgetThoseWhoLeft()
    const [free] = this.#free
    if (free) {
      this.#free.delete(free)
      this.#lend(free)
    }
    this.#askForMore()
  }

  #forgetThoseWhoLeft(): void {
    for (const request of this.#waiting) if (request.destroyed) this.#waiting.delete(request)
  }

  /** As long as there is one that nobody else waits for, it comes at once; otherwise, when the other end has made one. */
  #askForMore(): void {
    while (this.#asked < this.#waiting.size) {
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
    socket.off('data', hangUp)
    this.#lend(socket)
    // It may have been gone when it came.
    this.#askForMore()
  }

  #lend(socket: Socket): void {
    if (socket.destroyed || !socket.writable) return
    this.#forgetThoseWhoLeft()
    const [next] = this.#waiting
    if (next) {
      this.#waiting.delete(next)
      socket.off('data', hangUp)
      next.onSocket(socket)
    } else if (this.#free.size < FREE_MAX) {
      this.#free.add(socket)
      socket.on('data', hangUp)
    } else socket.destroy()
  }
}
