// Connections to the edge: limits of waiting requests, of uploads and of idle time.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import { HttpConnection, type QueuedRequest } from '../../lib/http/connection.ts'
import { attachConnectionGuard } from '../../lib/http/connection-guard.ts'
import type { ConnectionLimitOptions } from '../../lib/net/connection-limit.ts'
import type { VisitorError } from '../error-responses/causes.ts'
import type { ClientAddresses } from './client-address.ts'
import { headBytes } from './headers/end-to-end.ts'
import { expectsContinue, hasBody, mayUpgrade } from './headers/forwarded.ts'
import { headersError } from './headers/limits.ts'
import { CLOSE, sendError, sendRawError } from './responses.ts'

/** Headers and bodies of the waiting requests. */
const WAITING_BYTES_MAX = 256 * 1024
/** Memory of the waiting requests of all connections. A connection that would exceed the limit is closed. */
const WAITING_MEMORY_MAX = 64 * 1024 * 1024
/** Parsed headers take several times their size on the heap. */
const HEADER_MEMORY_FACTOR = 4
/** What Node buffers of a body that nobody reads. */
const BODY_BUFFER_BYTES = 64 * 1024
/** Minimum upload rate of a body, until the response begins. */
const BODY_BYTES_MIN = 1_024
const BODY_INTERVAL_MS = 30_000
/** Closes idle connections, and those of clients that stop sending or reading. */
const STALL_TIMEOUT_MS = 60_000

const rejections = {
  'headers too large': { cause: 'headers_too_large' },
  timeout: { cause: 'request_timeout' },
  malformed: { cause: 'malformed_request' },
  connect: { cause: 'connect_not_supported' },
} as const satisfies Record<string, VisitorError>

export interface IngressConnectionsOptions {
  readonly addresses: ClientAddresses
  readonly onConnectionsLimited: ConnectionLimitOptions['onReached']
  onRequest(request: IncomingMessage, response: ServerResponse): void
  onUpgrade(request: IncomingMessage, connection: IngressConnection, head: Buffer): void
}

export interface IngressConnections {
  /** The number of connections, without those of tunnel clients. */
  openCount(): number
  /** The number of connections with a request in progress. */
  busyCount(): number
  /** Counts a connection to another port of the edge. Undefined if it was closed, because of a limit. */
  admit(socket: Socket): (() => void) | undefined
  /** Nearly all connections are in use. */
  readonly isCrowded: boolean
  /** For Node's `shouldUpgradeCallback`. */
  shouldUpgrade(request: IncomingMessage): boolean
}

export function guardConnections(
  server: Server,
  { addresses, onConnectionsLimited, onRequest, onUpgrade }: IngressConnectionsOptions,
): IngressConnections {
  const waiting = { memory: 0 }
  const { connections, admit, limit, ignoreUpgrade } = attachConnectionGuard<VisitorError, IngressConnection>(
    server,
    {
      peer: (socket) => addresses.ofPeer(socket),
      onLimited: onConnectionsLimited,
      connect: (socket, release) => new IngressConnection(socket, release, waiting, onRequest),
      // Runs before a request is queued: otherwise requests with thousands of headers would pile up.
      check: headersError,
      // Without a body, there is nothing to wait for.
      sendsContinue: (request) => expectsContinue(request) || !hasBody(request),
      rejectFraming: (rule) => ({ cause: 'malformed_request', detail: `Transfer-Encoding ${rule}.` }),
      rejections,
    },
  )
  // Each connection handles its own timeout. Without a callback here, Node destroys every idle socket.
  server.setTimeout(STALL_TIMEOUT_MS, () => {})
  server.on('upgrade', (request, _stream, head) => {
    const connection = connections.get(request.socket)
    connection?.enqueue({ run: () => onUpgrade(request, connection, head) })
  })
  return {
    admit,
    openCount: () => connections.size,
    get isCrowded() {
      return limit.isCrowded
    },
    busyCount: () => [...connections.values()].filter(({ isBusy }) => isBusy).length,
    shouldUpgrade: (request) => mayUpgrade(request) || ignoreUpgrade(request),
  }
}

/**
 * Whether the edge waits for the client. The local server is slow if there are unread bytes, or if the client
 * waits for its 100 Continue.
 */
const isBodyPending = (request: IncomingMessage) =>
  !request.complete && request.readableLength === 0 && !request.isPaused()

function estimateMemory(request: IncomingMessage | undefined): number {
  if (!request) return 0
  const bytes = headBytes(request.url?.length ?? 0, request.rawHeaders)
  return bytes * HEADER_MEMORY_FACTOR + (hasBody(request) ? BODY_BUFFER_BYTES : 0)
}

interface WaitingRequest extends QueuedRequest {
  /** `bytesRead` of the socket when the request was queued. */
  queuedAtByte?: number
  memory?: number
}

export class IngressConnection extends HttpConnection<VisitorError> {
  declare protected readonly queue: WaitingRequest[]
  readonly #onRequest: IngressConnectionsOptions['onRequest']
  #releaseClientSlot: (() => void) | undefined
  /** Memory that waiting requests of all connections take. */
  readonly #waiting: { memory: number }
  /** The share of this connection. */
  #waitingMemory = 0

  constructor(
    socket: Socket,
    releaseClientSlot: () => void,
    waiting: { memory: number },
    onRequest: IngressConnectionsOptions['onRequest'],
  ) {
    super(socket, CLOSE)
    this.#waiting = waiting
    this.#onRequest = onRequest
    this.#releaseClientSlot = releaseClientSlot
    socket.on('timeout', () => this.#onTimeout())
    socket.once('close', () => this.#release())
  }

  get isBusy(): boolean {
    return this.queue[0]?.response !== undefined
  }

  /** The connection becomes one of a tunnel client, to which other limits and timeouts apply. */
  detach(): void {
    this.#release()
    this.stop()
    this.socket.setTimeout(0)
  }

  #release(): void {
    this.forget()
    this.#addWaiting(-this.#waitingMemory)
    this.#releaseClientSlot?.()
    this.#releaseClientSlot = undefined
  }

  protected override exceedsLimit(waiting: WaitingRequest): boolean {
    const { bytesRead } = this.socket
    waiting.queuedAtByte = bytesRead
    waiting.memory = estimateMemory(waiting.request)
    this.#addWaiting(waiting.memory)
    const firstWaitingAtByte = this.queue[1]?.queuedAtByte ?? bytesRead
    return bytesRead - firstWaitingAtByte > WAITING_BYTES_MAX || this.#waiting.memory > WAITING_MEMORY_MAX
  }

  #addWaiting(memory: number): void {
    this.#waitingMemory += memory
    this.#waiting.memory += memory
  }

  protected override handle(request: IncomingMessage, response: ServerResponse): boolean {
    this.#addWaiting(-(this.queue[0]?.memory ?? 0))
    const timer = this.#watchUpload(request, response)
    if (timer) response.once('close', () => clearInterval(timer))
    this.#onRequest(request, response)
    return false
  }

  protected override sendRejection(error: VisitorError): void {
    sendRawError(this.socket, undefined, error)
  }

  protected override respondWith(response: ServerResponse, error: VisitorError): boolean {
    sendError(response, error)
    return true
  }

  #watchUpload(request: IncomingMessage, response: ServerResponse): NodeJS.Timeout | undefined {
    if (!hasBody(request)) return undefined
    let { bytesRead } = this.socket
    let wasPending = !expectsContinue(request)
    return setInterval(() => {
      const received = this.socket.bytesRead - bytesRead
      bytesRead += received
      const isPending = !response.headersSent && isBodyPending(request)
      // The client may have got its 100 Continue a moment ago.
      if (isPending && wasPending && received < BODY_BYTES_MIN) this.reject({ cause: 'request_timeout' })
      wasPending = isPending
    }, BODY_INTERVAL_MS)
  }

  #onTimeout(): void {
    const [queued] = this.queue
    if (!queued || this.socket.writableLength > 0) this.socket.destroy()
    else if (queued.request && isBodyPending(queued.request)) this.closeGracefully()
    else this.socket.setTimeout(STALL_TIMEOUT_MS)
  }
}
