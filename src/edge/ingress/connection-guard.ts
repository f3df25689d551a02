// Connections to the edge. The requests of one connection are handled one at a time and in order, each gets
// at most one response, and malformed input is rejected after the responses to the requests before it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { type ClientError, classifyClientError } from '../../lib/net/client-error.ts'
import { ConnectionLimit, type ConnectionLimitOptions } from '../../lib/net/connection-limit.ts'
import { framingRule } from '../../lib/net/request-framing.ts'
import type { ClientAddresses } from './client-address.ts'
import { headersError } from './header-limits.ts'
import { headBytes } from './headers.ts'
import { hasBody, mayUpgrade } from './proxy.ts'
import { closeGracefully, discardInput, sendError, sendRawError } from './responses.ts'

/** Per connection, including the request in progress; the connection is closed if there are more. */
const PIPELINED_REQUESTS_MAX = 32
/** Headers and bodies of the waiting requests. */
const WAITING_BYTES_MAX = 256 * 1024
/** Memory of the waiting requests of all connections. A connection that would exceed it is closed. */
const WAITING_MEMORY_MAX = 64 * 1024 * 1024
/** Headers take several times their size as objects of V8. */
const HEADER_MEMORY_FACTOR = 4
/** What Node buffers of a body that nobody reads. */
const BODY_BUFFER_BYTES = 64 * 1024
/** Minimum upload rate of a body, until the response begins. */
const BODY_BYTES_MIN = 1_024
const BODY_INTERVAL_MS = 30_000
/** For a client that neither sends the rest of its request nor reads its response. */
const STALL_TIMEOUT_MS = 60_000

const ERRORS: Record<ClientError, [status: number, message: string]> = {
  'headers too large': [431, 'The request headers are too large.'],
  timeout: [408, 'The request headers did not arrive in time.'],
  malformed: [400, 'Malformed HTTP request.'],
}

export interface ConnectionGuardOptions {
  readonly addresses: ClientAddresses
  readonly onConnectionsLimited: ConnectionLimitOptions['onReached']
  onRequest(request: IncomingMessage, response: ServerResponse): void
  onUpgrade(request: IncomingMessage, connection: Connection, head: Buffer): void
}

export interface ConnectionGuard {
  /** The number of connections with a request in progress. */
  busyCount(): number
  /** Counts a connection to another port of the edge. Undefined if it was closed, because of a limit. */
  admit(socket: Socket): (() => void) | undefined
  /** For Node's `shouldUpgradeCallback`. */
  shouldUpgrade(request: IncomingMessage): boolean
}

export function attachConnectionGuard(
  server: Server,
  { addresses, onConnectionsLimited, onRequest, onUpgrade }: ConnectionGuardOptions,
): ConnectionGuard {
  const connections = new Map<Duplex, Connection>()
  const waiting = { memory: 0 }
  const limit = new ConnectionLimit({
    closeIdleConnections: () => server.closeIdleConnections(),
    onReached: onConnectionsLimited,
  })

  server.on('connection', (socket: Socket) => {
    const release = limit.admit(socket, addresses.ofPeer(socket))
    if (!release) return
    connections.set(socket, new Connection(socket, release, waiting))
    socket.once('close', () => connections.delete(socket))
  })
  // Each Connection handles its own timeout. Without a callback here, Node destroys every idle socket.
  server.setTimeout(STALL_TIMEOUT_MS, () => {})

  const enqueue = (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket)
    const rule = framingRule(request)
    // At once: many requests with thousands of headers could wait for their turn.
    const limitError = headersError(request)
    if (rule) connection?.reject(400, `Transfer-Encoding ${rule}.`)
    else if (limitError) connection?.reject(431, limitError)
    else connection?.enqueue({ request, response, run: () => onRequest(request, response) })
  }
  server.on('request', enqueue)
  // Unknown expectations are ignored.
  server.on('checkExpectation', enqueue)
  server.on('upgrade', (request, _stream, head) => {
    const connection = connections.get(request.socket)
    connection?.enqueue({ run: () => onUpgrade(request, connection, head) })
  })
  server.on('connect', (request, stream) => {
    // If a body follows, the stream is not the socket, and emits its own errors.
    stream.on('error', () => {})
    connections.get(request.socket)?.reject(405, 'This is not a proxy: CONNECT is not supported.')
  })
  server.on('clientError', ({ code }: Error & { code?: string }, socket) => {
    const clientError = classifyClientError(code, socket)
    if (clientError) connections.get(socket)?.reject(...ERRORS[clientError])
    else socket.destroy()
  })
  return {
    admit: (socket) => limit.admit(socket, addresses.ofPeer(socket)),
    busyCount: () => [...connections.values()].filter(({ isBusy }) => isBusy).length,
    shouldUpgrade(request) {
      if (mayUpgrade(request)) return true
      // Node discards what it has read after such a request.
      connections.get(request.socket)?.closeAfter(request)
      return false
    },
  }
}

/** Whether the edge waits for the client. Unread body bytes mean that the local server is slow. */
const isBodyPending = ({ complete, readableLength }: IncomingMessage) => !complete && readableLength === 0

function estimateMemory(request: IncomingMessage | undefined): number {
  if (!request) return 0
  const bytes = headBytes(request.url?.length ?? 0, request.rawHeaders)
  return bytes * HEADER_MEMORY_FACTOR + (hasBody(request) ? BODY_BUFFER_BYTES : 0)
}

interface QueuedRequest {
  readonly request?: IncomingMessage
  readonly response?: ServerResponse
  /** `bytesRead` of the socket when it was queued. */
  readonly queuedAtByte?: number
  /** While it waits. */
  readonly memory?: number
  run(): void
}

export class Connection {
  readonly socket: Socket
  readonly #queue: QueuedRequest[] = []
  #releaseClientSlot: (() => void) | undefined
  #latest: IncomingMessage | undefined
  /** The connection closes after the response to it, and nothing that follows it is interpreted. */
  #last: IncomingMessage | undefined
  #isRejected = false
  /** Of all connections, and the part of this one. */
  readonly #waiting: { memory: number }
  #waitingMemory = 0

  constructor(socket: Socket, releaseClientSlot: () => void, waiting: { memory: number }) {
    this.socket = socket
    this.#waiting = waiting
    this.#releaseClientSlot = releaseClientSlot
    // The server removes its own listeners when a request asks for an upgrade or CONNECT.
    socket.on('error', () => {})
    // Node calls this after the last response, while the client may still be sending its request.
    socket.destroySoon = () => closeGracefully(socket)
    socket.on('drain', () => this.#queue[0]?.response?.emit('drain'))
    socket.on('timeout', () => this.#onTimeout())
    socket.once('close', () => this.#release())
  }

  get isBusy(): boolean {
    return this.#queue[0]?.response !== undefined
  }

  /** The connection becomes that of a tunnel client, which has its own limits and timeouts. */
  detach(): void {
    this.#release()
    this.#isRejected = true
    this.socket.setTimeout(0)
  }

  /** Also forgets the requests, because they would stay in memory as long as a tunnel is open. */
  #release(): void {
    this.#queue.length = 0
    this.#addWaiting(-this.#waitingMemory)
    this.#latest = undefined
    this.#releaseClientSlot?.()
    this.#releaseClientSlot = undefined
  }

  /** To be called before the request is queued. */
  closeAfter(request: IncomingMessage): void {
    this.#last ??= request
  }

  enqueue(queued: QueuedRequest): void {
    if (this.#isRejected || this.socket.destroyed) return
    if (this.#last && this.#last !== queued.request) {
      this.#isRejected = true
      discardInput(this.socket)
      return
    }
    if (this.#last && queued.response) queued.response.shouldKeepAlive = false
    this.#latest = queued.request ?? this.#latest
    const { bytesRead } = this.socket
    const memory = this.#queue.length === 0 ? 0 : estimateMemory(queued.request)
    this.#queue.push({ ...queued, queuedAtByte: bytesRead, memory })
    this.#addWaiting(memory)
    const firstWaitingAtByte = this.#queue[1]?.queuedAtByte ?? bytesRead
    if (this.#queue.length === 1) this.#runNext()
    else if (
      this.#queue.length > PIPELINED_REQUESTS_MAX ||
      bytesRead - firstWaitingAtByte > WAITING_BYTES_MAX ||
      this.#waiting.memory > WAITING_MEMORY_MAX
    )
      this.socket.destroy()
  }

  #addWaiting(memory: number): void {
    this.#waitingMemory += memory
    this.#waiting.memory += memory
  }

  /** Responds with an error, after the responses to the requests before, and closes the connection. */
  reject(status: number, message: string): void {
    if (this.#isRejected) return
    this.#isRejected = true
    if (this.#last?.complete) {
      discardInput(this.socket)
      return
    }
    const errorResponse = { run: () => sendRawError(this.socket, status, message) }
    const last = this.#queue.at(-1)
    if (this.#latest === undefined || this.#latest.complete) {
      this.#queue.push(errorResponse)
      if (this.#queue.length === 1) this.#runNext()
    } else if (last && last.request === this.#latest && this.#queue.length > 1)
      this.#queue.splice(-1, 1, errorResponse)
    else if (last?.request === this.#latest && last.response && !last.response.headersSent) {
      last.response.shouldKeepAlive = false
      sendError(last.response, status, message)
    }
    // Already responded: the client would match a second response to its next request.
    else closeGracefully(this.socket)
  }

  #runNext(): void {
    const [queued] = this.#queue
    if (!queued) return
    this.#addWaiting(-(queued.memory ?? 0))
    if (!this.socket.writable) {
      this.#queue.length = 0
      return
    }
    const timer = this.#watchUpload(queued)
    queued.response?.once('close', () => {
      clearInterval(timer)
      this.#queue.shift()
      this.#runNext()
    })
    queued.run()
  }

  #watchUpload({ request, response }: QueuedRequest): NodeJS.Timeout | undefined {
    if (!request || !response || !hasBody(request)) return undefined
    let { bytesRead } = this.socket
    return setInterval(() => {
      const received = this.socket.bytesRead - bytesRead
      bytesRead += received
      if (received < BODY_BYTES_MIN && !response.headersSent && isBodyPending(request))
        this.reject(408, 'The request body did not arrive in time.')
    }, BODY_INTERVAL_MS)
  }

  #onTimeout(): void {
    const [queued] = this.#queue
    if (!queued || this.socket.writableLength > 0) this.socket.destroy()
    else if (queued.request && isBodyPending(queued.request)) closeGracefully(this.socket)
    else this.socket.setTimeout(STALL_TIMEOUT_MS)
  }
}
