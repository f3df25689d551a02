// One connection to the edge: a yamux session over a WebSocket. Its first stream carries events, and the
// others are connections to the local server.

import { KEEP_ALIVE, type Opened, type TunnelRequest } from '../tunnel-protocol/protocol.ts'
import type { WebSocketConnection } from '../tunnel-protocol/websocket.ts'
import { Session, type YamuxStream } from '../yamux/index.ts'
import { type ConnectOptions, connect, TunnelRejected } from './connect.ts'
import { type EventHandlers, readEvents } from './events.ts'
import type { StreamServer } from './local-server.ts'

const OPEN_TIMEOUT_MS = 10_000
/** Far above what an edge opens, because streams that it resets count for a second. */
const STREAMS_MAX = 4_096
/** How long the edge has to close a connection on which nothing is in progress. */
const IDLE_CLOSE_MS = 1_000

interface ConnectionOptions extends ConnectOptions, Omit<EventHandlers, 'onClose'> {
  readonly localServer: StreamServer
}

/** Resolves when the tunnel is open. */
export async function openConnection(options: ConnectionOptions): Promise<EdgeConnection> {
  const connection = new EdgeConnection(await connect(options), options)
  await connection.whenOpen()
  return connection
}

export class EdgeConnection {
  /** Resolves with the reason for which the connection was closed. */
  readonly closed: Promise<string>
  /**
   * Resolves with the same reason; or earlier, with undefined, if the edge asks for a new connection or the
   * tunnel is stopped, while this connection completes its streams. Rejects with TunnelRejected if the edge
   * closes the tunnel.
   */
  readonly lossReason: Promise<string | undefined>
  readonly #edge: string
  readonly #options: ConnectionOptions
  readonly #session: Session
  readonly #isOpen = Promise.withResolvers<void>()
  readonly #lossReason = Promise.withResolvers<string | undefined>()
  #opened: Opened | undefined
  #events: YamuxStream | undefined
  #isDraining = false
  #closeTimer: NodeJS.Timeout | undefined

  constructor(webSocket: WebSocketConnection, options: ConnectionOptions) {
    this.#options = options
    this.#edge = options.edge
    const closed = Promise.withResolvers<string>()
    this.closed = closed.promise
    this.lossReason = this.#lossReason.promise
    // Nothing awaits it after the tunnel has another connection.
    this.lossReason.catch(() => undefined)
    const stop = () => {
      this.#lossReason.resolve(undefined)
      if (!this.#opened) this.close()
    }
    this.#session = new Session(webSocket, {
      role: 'client',
      keepAlive: KEEP_ALIVE,
      maxStreams: STREAMS_MAX,
      pressure: options.localServer.buffers,
      onStream: (stream) => this.#onStream(stream),
      onGoAway: () => this.#lossReason.resolve(undefined),
      onClose: (error) => {
        clearTimeout(this.#closeTimer)
        options.signal.removeEventListener('abort', stop)
        const reason = this.#closeReason(error)
        this.#isOpen.reject(new Error(reason))
        closed.resolve(reason)
        this.#lossReason.resolve(reason)
      },
    })
    options.signal.addEventListener('abort', stop)
    if (options.signal.aborted) stop()
  }

  get opened(): Opened {
    if (!this.#opened) throw new Error('The tunnel is not open.')
    return this.#opened
  }

  /** Connections to the local server. */
  get streams(): number {
    return this.#session.streams - (this.#events && !this.#events.destroyed ? 1 : 0)
  }

  /** Rejects if the edge does not open the tunnel in time. */
  async whenOpen(): Promise<void> {
    const timer = setTimeout(() => {
      this.#isOpen.reject(new Error(`The edge at ${this.#edge} did not open the tunnel in time.`))
      this.close()
    }, OPEN_TIMEOUT_MS)
    await this.#isOpen.promise.finally(() => clearTimeout(timer))
  }

  /**
   * Asks the edge for no new streams. Resolves when those in progress are complete and the connection is
   * closed.
   */
  async drain(): Promise<void> {
    this.#isDraining = true
    this.#session.goAway()
    this.#closeIfIdle()
    await this.closed
  }

  close(): void {
    this.#session.close()
  }

  #onStream(stream: YamuxStream): void {
    stream.on('error', () => undefined)
    if (!this.#events) {
      this.#events = stream
      const { onRequest, onConnection, onNotice, onOtherEdges, onConnectionRequested } = this.#options
      readEvents(stream, {
        onOpen: (opened) => this.#onOpen(opened),
        onRequest,
        onConnection,
        onNotice,
        onOtherEdges,
        onConnectionRequested,
        onClose: ({ message }) => this.#lossReason.reject(new TunnelRejected('closed', message)),
      })
      return
    }
    clearTimeout(this.#closeTimer)
    stream.once('close', () => this.#closeIfIdle())
    if (this.#opened) this.#options.localServer.serve(stream)
    // Waits for the next tick, because the event before it may not have been read yet.
    else process.nextTick(() => this.#serveIfOpen(stream))
  }

  /** Until the edge has confirmed the access rules, nothing may reach the local server. */
  #serveIfOpen(stream: YamuxStream): void {
    if (this.#opened) this.#options.localServer.serve(stream)
    else stream.destroy()
  }

  #onOpen(opened: Opened): void {
    if (this.#opened) return
    if (lacksAccessRules(this.#options.request, opened)) {
      this.#isOpen.reject(accessUnsupported(this.#edge))
      this.close()
      return
    }
    this.#opened = opened
    // Called at once, because events of requests may follow in the same buffer.
    this.#options.onOpen(opened)
    this.#isOpen.resolve()
  }

  /** The edge closes it first, after the events of the last requests. It may still open streams meanwhile. */
  #closeIfIdle(): void {
    clearTimeout(this.#closeTimer)
    if (this.#isDraining && this.streams === 0)
      this.#closeTimer = setTimeout(() => this.close(), IDLE_CLOSE_MS)
  }

  #closeReason(error: (Error & { code?: string }) | undefined): string {
    return error && error.code !== 'ECONNRESET'
      ? `The connection to the edge at ${this.#edge} was lost: ${error.message.replace(/\.$/, '')}.`
      : `The edge at ${this.#edge} closed the connection.`
  }
}

/** An edge that does not know access rules ignores them, and would let everybody in. */
const lacksAccessRules = ({ access }: TunnelRequest, { access: applied }: Opened) =>
  (access?.basicAuth !== undefined && !applied?.basicAuth) ||
  ((access?.allowIp ?? []).length > 0 && !applied?.allowIp)

const accessUnsupported = (edge: string) =>
  new TunnelRejected(
    'access_unsupported',
    `The edge at ${edge} does not support access rules, so the tunnel was closed. Upgrade the edge.`,
  )
