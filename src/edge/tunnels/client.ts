// One connected client of a tunnel: its session, its connections to the local server, and what it carried.
import type { SyncResult } from '../../edge-sdk/index.ts'
import { hashSecret } from '../../lib/credentials/secret.ts'
import {
  KEEP_ALIVE,
  type Opened,
  type TunnelClosure,
  type TunnelEvent,
  type TunnelRequest,
} from '../../tunnel-protocol/protocol.ts'
import { type Connection, type MemoryPressure, Session, type YamuxStream } from '../../yamux/index.ts'
import { quotaUsedUp } from '../admission/rejections.ts'
import { ConnectionPool } from '../local-server/connection-pool.ts'
import { EventWriter } from './event-writer.ts'
import { ForwardedRate, startUnusedCheck } from './extra-connections.ts'
import { SilenceDetector } from './silence-detector.ts'
import type { UpstreamClient } from './upstream-client.ts'

/** How far the windows of all clients may grow: responses that are read slowly must not fill the memory. */
const totalGrowth = { bytesLeft: 256 * 1024 * 1024 }

/**
 * How long other edges and workers may take to learn that a client has moved. What they have sent it before
 * is served.
 */
export const MOVED_MS = 500

/** The API key that a client has connected with. */
export interface ClientKey {
  readonly secret: string
  readonly id: string
  readonly workspace: string
}

/** Why a tunnel was closed; `disconnected` means that its client is gone. */
export type CloseReason =
  | 'archived'
  | 'closed'
  | 'disconnected'
  | 'expired'
  | 'replaced'
  | 'revoked'
  | 'stopped'
  | ControlPlaneReason

/** Why the control plane closes a tunnel. */
type ControlPlaneReason = SyncResult['close'][number]['reason']

export interface TunnelClientOptions
  extends Pick<TunnelRequest, 'target' | 'hostHeader' | 'idleConnections' | 'extra' | 'pool'> {
  /** The WebSocket of the client. */
  readonly connection: Connection
  readonly id: string
  /** The IP address of the client. */
  readonly address: string
  readonly key: ClientKey
  readonly resume: string | undefined
  readonly session: string | undefined
  readonly software: string | undefined
  /** The memory of the workspace. */
  readonly pressure: MemoryPressure
  /** Bytes arrived, or are about to be sent. It may abort all requests. */
  onTransfer(): void
  /** The client is stopping, and its requests are complete. */
  onDrained(): void
  /** The connection is closed, by whichever side. */
  onClosed(): void
}

export class TunnelClient implements UpstreamClient {
  readonly id: string
  readonly address: string
  readonly key: ClientKey
  readonly keyHash: string
  /** A connection that replaces this one has the same secret. */
  readonly resume: string | undefined
  /** All connections of the client have the same secret. */
  readonly session: string | undefined
  /** Name and version of the client program. */
  readonly software: string | undefined
  readonly target: string | undefined
  readonly hostHeader: string | undefined
  /** The edge has asked for this connection. */
  readonly isExtra: boolean
  readonly totals = { requests: 0, bytesIn: 0, bytesOut: 0 }
  isDraining = false
  isClosed = false
  readonly silence = new SilenceDetector(() => this.probe())
  #active = 0
  /** In a pool, extra connections of some clients would take requests from the others. */
  readonly #forwardedRate: ForwardedRate | undefined
  readonly #onDrained: () => void
  readonly #session: Session
  readonly #eventStream: YamuxStream
  readonly #events: EventWriter
  readonly idleConnections: number | undefined
  #connections: ConnectionPool | undefined
  #isQuotaReached = false
  #drainTimer: NodeJS.Timeout | undefined
  readonly #drainListeners = new Set<() => void>()

  constructor(options: TunnelClientOptions) {
    const { connection, key, pressure, onTransfer, onClosed } = options
    this.id = options.id
    this.address = options.address
    this.key = key
    this.keyHash = hashSecret(key.secret)
    this.resume = options.resume
    this.session = options.session
    this.software = options.software
    this.target = options.target
    this.hostHeader = options.hostHeader
    this.idleConnections = options.idleConnections
    this.isExtra = options.extra === true
    this.#onDrained = options.onDrained
    this.#session = new Session(connection, {
      role: 'server',
      keepAlive: KEEP_ALIVE,
      totalGrowth,
      pressure,
      onTransfer,
      // Only the edge opens streams.
      maxStreams: 0,
      onStream: (stream) => stream.destroy(),
      onGoAway: () => this.drain(),
      onClose: () => {
        this.isClosed = true
        clearInterval(unusedCheck)
        clearTimeout(this.#drainTimer)
        onClosed()
      },
    })
    this.#eventStream = this.#session.open()
    this.#events = new EventWriter(this.#eventStream)
    const unusedCheck = options.extra ? startUnusedCheck(this) : undefined
    if (!options.pool)
      this.#forwardedRate = new ForwardedRate(() => this.#events.sendNow({ event: 'connect' }))
  }

  get isSilent(): boolean {
    return this.silence.isSilent
  }

  get workspace(): string {
    return this.key.workspace
  }

  get active(): number {
    return this.#active
  }

  start(): void {
    this.#active += 1
  }

  finish(): void {
    this.#active -= 1
    if (this.isDraining && !this.isClosed) this.#closeIfDrained()
  }

  /** Another worker of this edge has forwarded a request to it. */
  onForwarded(): void {
    this.#forwardedRate?.onRequest(performance.now())
  }

  announce(opened: Opened): void {
    this.#events.sendNow({ event: 'open', ...opened })
  }

  send(event: TunnelEvent): void {
    this.#events.send(event)
  }

  tellOtherEdges(edges: readonly string[]): void {
    this.#events.sendNow({ event: 'edges', edges })
  }

  /** Tells the client that traffic is rejected because of a quota, or accepted again. */
  setQuotaReached(until: number | undefined): void {
    const isReached = until !== undefined
    if (isReached === this.#isQuotaReached) return
    this.#isQuotaReached = isReached
    const message = isReached
      ? `${quotaUsedUp(this.key.workspace, until)} Until then, traffic through this tunnel is rejected.`
      : 'The quota of the workspace was raised or renewed: traffic is accepted again.'
    this.#events.sendNow({ event: 'notice', message })
  }

  onDraining(listener: () => void): () => void {
    if (this.isDraining) listener()
    this.#drainListeners.add(listener)
    return () => this.#drainListeners.delete(listener)
  }

  /** It gets no further requests, and is closed when those in progress or on their way are complete. */
  drain(): void {
    this.isDraining = true
    this.#connections?.drain()
    for (const listener of this.#drainListeners) listener()
    this.#closeIfDrained()
  }

  /** A client that asks for no new streams gets none, so there is nothing to wait for. */
  #closeIfDrained(): void {
    clearTimeout(this.#drainTimer)
    if (this.#active > 0) return
    if (this.#session.isGoingAway) this.#onDrained()
    else this.#drainTimer = setTimeout(() => this.#onDrained(), MOVED_MS)
  }

  openStream(): YamuxStream {
    const stream = this.#session.open()
    // Users of the stream have their own listeners; an idle one has none.
    stream.on('error', () => {})
    return stream
  }

  /** Resolves when the client responds, or has sent so much that it must be running. */
  probe(): Promise<void> {
    return this.#session.probe()
  }

  get connections(): ConnectionPool {
    this.#connections ??= new ConnectionPool(() => this.openStream(), this.idleConnections)
    return this.#connections
  }

  /** Ends the requests and connections in progress. The client stays connected. */
  abortRequests(): void {
    for (const stream of this.#session.openStreams()) if (stream !== this.#eventStream) stream.destroy()
  }

  /** Tells the client to connect elsewhere; requests in progress are completed. */
  goAway(): void {
    this.#session.goAway()
    // The client does not connect again instead of it.
    if (this.isExtra) this.drain()
  }

  /** Without a closure, the client may reconnect. */
  close(closure?: TunnelClosure): void {
    if (closure) this.#events.send({ event: 'close', ...closure })
    this.#events.flush()
    this.#session.close()
  }
}
