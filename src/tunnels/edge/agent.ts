// An http.Agent over the connections of one tunnel: assigns each connection to one request at a time, first
// come, first served. It extends pipenet's agent, which provides new connections but does not reuse idle ones
// in that order.
import type { ClientRequest } from 'node:http'
import type { Socket } from 'node:net'
import { TunnelAgent, type TunnelServer } from 'pipenet/server'

/**
 * Maximum number of connections of a tunnel; each carries one request or one upgraded connection at a time.
 */
export const CONNECTIONS_MAX = 100
/** Maximum number of idle connections that are kept for reuse. */
const IDLE_MAX = 10

/** `onSocket` is what Node calls on requests of an agent; its types omit it. */
type PendingRequest = ClientRequest & { onSocket(socket: Socket): void }

/**
 * Closes a connection that sends unsolicited data, which would be parsed as the response to the next request.
 */
export function closeUnsolicited(this: Socket): void {
  this.destroy()
}

export class TunnelSocketAgent extends TunnelAgent {
  readonly #pending = new Set<PendingRequest>()
  readonly #idle = new Set<Socket>()
  /** Number of connections that were requested from pipenet and have not arrived. */
  #requested = 0

  constructor(secret: string, listener: TunnelServer) {
    super({ clientId: secret, maxTcpSockets: CONNECTIONS_MAX, tunnelServer: listener })
  }

  /** Called by Node with each request to send. */
  addRequest(request: PendingRequest): void {
    this.#pending.add(request)
    // Node does not notify the agent of aborted requests, so they would pile up in a tunnel without
    // connections.
    if (this.#pending.size > 2 * CONNECTIONS_MAX) this.#dropAborted()
    const [socket] = this.#idle
    if (socket) {
      this.#idle.delete(socket)
      this.#assign(socket)
    }
    this.#requestConnections()
  }

  #dropAborted(): void {
    for (const request of this.#pending) if (request.destroyed) this.#pending.delete(request)
  }

  /**
   * pipenet calls back immediately if it has an unused connection, and otherwise when the client adds one.
   */
  #requestConnections(): void {
    while (this.#requested < this.#pending.size) {
      this.#requested += 1
      this.createConnection({}, (error, socket) => {
        this.#requested -= 1
        if (!error) this.#onConnection(socket as Socket)
      })
    }
  }

  #onConnection(socket: Socket): void {
    // Emitted by Node when a response is complete and the connection can be reused.
    socket.on('free', () => this.#assign(socket))
    socket.once('close', () => this.#idle.delete(socket))
    socket.off('data', closeUnsolicited)
    this.#assign(socket)
    // The connection may have been closed already, in which case the request still waits.
    this.#requestConnections()
  }

  #assign(socket: Socket): void {
    if (socket.destroyed || !socket.writable) return
    this.#dropAborted()
    const [next] = this.#pending
    if (next) {
      this.#pending.delete(next)
      socket.off('data', closeUnsolicited)
      next.onSocket(socket)
    } else if (this.#idle.size < IDLE_MAX) {
      this.#idle.add(socket)
      socket.on('data', closeUnsolicited)
    } else socket.destroy()
  }
}
