// Accepts connections of tunnel clients: those that arrive as HTTP upgrades, and those of stock pipenet
// clients on pipenet's own port.
import type { Socket } from 'node:net'
import { TunnelServer } from 'pipenet/server'
import { closeUnsolicited } from './agent.ts'

const KEEP_ALIVE_MS = 15_000

type Handler = (socket: Socket) => void

/** pipenet's server, extended by `accept` and by a callback for each connection. */
export class TunnelListener extends TunnelServer {
  readonly #handlers = new Map<string, Handler>()
  readonly #onConnection: (secret: string, socket: Socket) => void

  constructor(onConnection: (secret: string, socket: Socket) => void) {
    super()
    this.#onConnection = onConnection
  }

  override registerHandler(secret: string, handler: Handler): void {
    const accept = (socket: Socket) => {
      socket.setNoDelay(true)
      socket.setKeepAlive(true, KEEP_ALIVE_MS)
      socket.on('error', () => socket.destroy())
      // Reads idle connections too, so that their end is noticed.
      socket.on('data', closeUnsolicited)
      socket.on('end', closeUnsolicited)
      // Emitted by Node on an upgrade. Upgraded protocols may close one direction before the other.
      socket.once('agentRemove', () => socket.off('end', closeUnsolicited))
      this.#onConnection(secret, socket)
      handler(socket)
    }
    this.#handlers.set(secret, accept)
    super.registerHandler(secret, accept)
  }

  override unregisterHandler(secret: string): void {
    this.#handlers.delete(secret)
    super.unregisterHandler(secret)
  }

  /** Adds a connection that arrived by an HTTP upgrade. */
  accept(secret: string, socket: Socket): void {
    const handler = this.#handlers.get(secret)
    if (handler) handler(socket)
    else socket.destroy()
  }
}
