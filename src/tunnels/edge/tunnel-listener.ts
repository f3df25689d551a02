// pipenet's server for the connections of tunnel clients, also for those that arrive as HTTP upgrades.
import type { Socket } from 'node:net'
import { TunnelServer } from 'pipenet/server'
import { hangUp } from './agent.ts'

const PROBE_AFTER_MS = 15_000

type Handler = (socket: Socket) => void

/** pipenet's own, which also takes connections that came in another way, and tells of each: pipenet forgets some of them. */
export class Door extends TunnelServer {
  readonly #handlers = new Map<string, Handler>()
  readonly #onConnected: (secret: string, socket: Socket) => void

  constructor(onConnected: (secret: string, socket: Socket) => void) {
    super()
    this.#onConnected = onConnected
  }

  override registerHandler(secret: string, handler: Handler): void {
    const take = (socket: Socket) => {
      socket.setNoDelay(true)
      socket.setKeepAlive(true, PROBE_AFTER_MS)
      socket.on('error', () => socket.destroy())
      // Read even while nothing is asked over it, when there is nothing to come but its end.
      socket.on('data', hangUp)
      socket.on('end', hangUp)
      // Said by Node when it goes on as something else, which may end in one direction before the other.
      socket.once('agentRemove', () => socket.off('end', hangUp))
      this.#onConnected(secret, socket)
      handler(socket)
    }
    this.#handlers.set(secret, take)
    super.registerHandler(secret, take)
  }

  override unregisterHandler(secret: string): void {
    this.#handlers.delete(secret)
    super.unregisterHandler(secret)
  }

  take(secret: string, socket: Socket): void {
    const handler = this.#handlers.get(secret)
    if (handler) handler(socket)
    else socket.destroy()
  }
}
