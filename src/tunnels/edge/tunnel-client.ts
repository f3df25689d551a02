// One connected client of a tunnel: its session, the streams that are kept for reuse, and what it carried.
import type { Duplex } from 'node:stream'
import { Session, type YamuxStream } from '../../yamux/index.ts'
import { KEEP_ALIVE, type Opened, type TunnelEvent } from '../protocol.ts'
import { EventWriter } from './event-writer.ts'

/** Shorter than the keep-alive timeouts of common servers, so that they rarely close a stream in use. */
const IDLE_TIMEOUT_MS = 1_000
const IDLE_MAX = 100
/** How long the local server may take to close its side of an idle stream. */
const END_TIMEOUT_MS = 5_000

/** Of the windows of all clients: otherwise responses that are read slowly could fill the memory. */
const totalGrowth = { bytesLeft: 256 * 1024 * 1024 }

export interface KeyHolder {
  readonly key: string
  readonly keyId: string
  readonly workspace: string
}

/** Why a tunnel was closed; `disconnected` means that its client is gone. */
export type CloseReason = 'closed' | 'disconnected' | 'replaced' | 'revoked' | 'stopped'

export interface TunnelClientOptions {
  /** The WebSocket of the client. */
  readonly connection: Duplex
  readonly holder: KeyHolder
  readonly resume: string | undefined
  readonly software: string | undefined
  /** The client is stopping, and its requests are complete. */
  onDrained(): void
  /** The connection is closed, by whichever side. */
  onClosed(): void
}

export class TunnelClient {
  readonly holder: KeyHolder
  /** A later connection of the same client has the same secret. */
  readonly resume: string | undefined
  /** Name and version of its program. */
  readonly software: string | undefined
  readonly totals = { requests: 0, bytesIn: 0, bytesOut: 0 }
  isDraining = false
  #active = 0
  readonly #onDrained: () => void
  readonly #session: Session
  readonly #events: EventWriter
  /** Streams without a request, the latest last. */
  readonly #idle: { stream: YamuxStream; since: number }[] = []
  #idleTimer: NodeJS.Timeout | undefined

  constructor(options: TunnelClientOptions) {
    const { connection, holder, onDrained, onClosed } = options
    this.holder = holder
    this.resume = options.resume
    this.software = options.software
    this.#onDrained = onDrained
    this.#session = new Session(connection, {
      role: 'server',
      keepAlive: KEEP_ALIVE,
      totalGrowth,
      // The client opens none.
      maxStreams: 0,
      onStream: (stream) => stream.destroy(),
      onGoAway: () => {
        this.isDraining = true
        this.#closeIdle(Number.POSITIVE_INFINITY)
        if (this.#active === 0) onDrained()
      },
      onClose: () => {
        clearTimeout(this.#idleTimer)
        onClosed()
      },
    })
    this.#events = new EventWriter(this.#session.open())
  }

  /** Requests and connections in progress. */
  get active(): number {
    return this.#active
  }

  start(): void {
    this.#active += 1
  }

  finish(): void {
    this.#active -= 1
    if (this.#active === 0 && this.isDraining) this.#onDrained()
  }

  announce(opened: Opened): void {
    this.#events.sendNow({ event: 'open', ...opened })
  }

  send(event: TunnelEvent): void {
    this.#events.send(event)
  }

  /** Opens a stream, which the client connects to its local server. Throws if the session is closed. */
  openStream(): YamuxStream {
    const stream = this.#session.open()
    // Users of the stream have their own listeners; an idle one has none.
    stream.on('error', () => {})
    return stream
  }

  takeIdle(): YamuxStream | undefined {
    for (let idle = this.#idle.pop(); idle; idle = this.#idle.pop()) {
      const { stream } = idle
      if (stream.destroyed) continue
      stream.off('data', destroy)
      stream.off('end', destroy)
      return stream
    }
    return undefined
  }

  /** Keeps a stream whose response is complete for another request. */
  putIdle(stream: YamuxStream): void {
    if (stream.destroyed) return
    // The local server may have ended it right after the response.
    const isOpen = stream.readable && stream.writable
    if (!isOpen || this.isDraining || this.#idle.length >= IDLE_MAX) {
      endStream(stream)
      return
    }
    this.#idle.push({ stream, since: performance.now() })
    stream.on('data', destroy)
    stream.on('end', destroy)
    this.#idleTimer ??= setTimeout(() => this.#onIdleTimeout(), IDLE_TIMEOUT_MS).unref()
  }

  /** Tells the client to connect elsewhere; requests in progress are completed. */
  goAway(): void {
    this.#session.goAway()
  }

  close(): void {
    this.#events.flush()
    this.#session.close()
  }

  #onIdleTimeout(): void {
    this.#idleTimer = undefined
    this.#closeIdle(performance.now() - IDLE_TIMEOUT_MS)
    const oldest = this.#idle[0]
    if (!oldest) return
    const wait = oldest.since + IDLE_TIMEOUT_MS - performance.now()
    this.#idleTimer = setTimeout(() => this.#onIdleTimeout(), Math.max(wait, 1)).unref()
  }

  #closeIdle(before: number): void {
    for (let oldest = this.#idle[0]; oldest && oldest.since <= before; oldest = this.#idle[0]) {
      this.#idle.shift()
      endStream(oldest.stream)
    }
  }
}

/** Closes a stream that sends unsolicited data, which would be parsed as the response to the next request. */
function destroy(this: YamuxStream): void {
  this.destroy()
}

/** Closes the connection to the local server, and resets it if the server does not close its side. */
function endStream(stream: YamuxStream): void {
  stream.resume()
  stream.end()
  const timeout = setTimeout(() => stream.destroy(new Error('The stream was not closed.')), END_TIMEOUT_MS)
  timeout.unref()
  stream.once('close', () => clearTimeout(timeout))
}
