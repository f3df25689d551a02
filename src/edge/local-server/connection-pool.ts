// The connections to the local server of one tunnel client. Those without a request are kept for a moment,
// and used for the next ones.
import type { YamuxStream } from '../../yamux/index.ts'
import { UpstreamConnection } from './connection.ts'

/** Shorter than the keep-alive timeouts of common servers, so that they rarely close a connection in use. */
const IDLE_TIMEOUT_MS = 1_000
/** If the client does not say how many its local server may have. */
const IDLE_MAX = 100

export class ConnectionPool {
  readonly #openStream: () => YamuxStream
  readonly #idleMax: number
  /** The connection that became idle last is the last. */
  readonly #idle: { connection: UpstreamConnection; since: number }[] = []
  #timer: NodeJS.Timeout | undefined
  #isDraining = false

  constructor(openStream: () => YamuxStream, idleMax = IDLE_MAX) {
    this.#openStream = openStream
    this.#idleMax = idleMax
  }

  /** Throws if the session of the client is closed. */
  open(): UpstreamConnection {
    return new UpstreamConnection(this.#openStream())
  }

  takeIdle(): UpstreamConnection | undefined {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop())
      if (!idle.connection.stream.destroyed) return idle.connection
    return undefined
  }

  /** Keeps a connection whose response is complete for another request. */
  put(connection: UpstreamConnection): void {
    if (connection.stream.destroyed) return
    // The local server may have ended it right after the response, or sent more than that.
    const isIdle = connection.isOpen && connection.stream.unreadBytes === 0
    if (!isIdle || this.#isDraining || this.#idle.length >= this.#idleMax) {
      connection.close()
      return
    }
    // The reader of the response may have paused it.
    if (connection.stream.isPaused()) connection.stream.resume()
    this.#idle.push({ connection, since: performance.now() })
    this.#timer ??= setTimeout(() => this.#onTimeout(), IDLE_TIMEOUT_MS).unref()
  }

  /** Keeps no connections from now on. */
  drain(): void {
    this.#isDraining = true
    this.#closeIdle(Number.POSITIVE_INFINITY)
  }

  #onTimeout(): void {
    this.#timer = undefined
    this.#closeIdle(performance.now() - IDLE_TIMEOUT_MS)
    const oldest = this.#idle[0]
    if (!oldest) return
    const wait = oldest.since + IDLE_TIMEOUT_MS - performance.now()
    this.#timer = setTimeout(() => this.#onTimeout(), Math.max(wait, 1)).unref()
  }

  #closeIdle(before: number): void {
    for (let oldest = this.#idle[0]; oldest && oldest.since <= before; oldest = this.#idle[0]) {
      this.#idle.shift()
      oldest.connection.close()
    }
  }
}
