// One client connection: handles its requests one at a time and in order, and closes it so that the client
// can read the last response.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Logger } from 'pino'
import { faults } from '../../../contract/faults.ts'
import { GracefulClose } from '../../../lib/net/graceful-close.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import type { Fault } from '../../domain/fault.ts'
import type { ResponseCache, VerifiedHeader } from '../response-cache/cache.ts'
import { errorBody } from './errors.ts'

/** Bounds the memory of a client that pipelines requests and never reads. */
const PIPELINED_REQUESTS_MAX = 32
/** Twice the largest accepted body: a client that exceeds a limit can still read the response. */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024
const CLOSE_TIMEOUT_MS = 5_000
/** For requests in progress when the connection is rejected; longer than the timeout of any SQL statement. */
const EARLIER_REQUESTS_TIMEOUT_MS = 10_000

export interface RequestHandlers {
  /** Tried first. */
  responseCache: ResponseCache
  handle: RequestListener
  log: Logger
}

interface QueuedRequest {
  readonly request: IncomingMessage
  readonly response: ServerResponse
}

export class Connection {
  readonly #socket: Socket
  readonly #handlers: RequestHandlers
  readonly #gracefulClose: GracefulClose
  readonly #verified: VerifiedHeader = { authorization: undefined, hash: undefined }
  /** Requests without a complete response: the first is in progress, the others wait. */
  readonly #queue: QueuedRequest[] = []
  #latest: IncomingMessage | undefined
  /** The connection closes after the response to it, and nothing that follows it is interpreted. */
  #last: IncomingMessage | undefined
  /** Input is discarded, and the connection closes after the responses to complete requests. */
  #isRejected = false
  /** Sent after those responses. */
  #fault: Fault | undefined

  constructor(socket: Socket, handlers: RequestHandlers) {
    this.#socket = socket
    this.#handlers = handlers
    this.#gracefulClose = new GracefulClose(socket, {
      discardBytesMax: DISCARD_BYTES_MAX,
      timeoutMs: CLOSE_TIMEOUT_MS,
    })
    // Node removes its own listener when it emits `connect`; an unhandled `error` would end the process.
    socket.on('error', ignore)
    // Node calls this after the last response, while a rejected body may still be arriving.
    socket.destroySoon = () => this.#close()
  }

  /** To be called before `onRequest`. */
  closeAfter(request: IncomingMessage): void {
    this.#last ??= request
  }

  onRequest(request: IncomingMessage, response: ServerResponse): void {
    // The rest of a buffer is parsed although its first part was rejected.
    if (this.#isRejected) return
    if (this.#last === request) response.shouldKeepAlive = false
    else if (this.#last) {
      this.#gracefulClose.discardInput()
      return
    }
    this.#latest = request
    this.#queue.push({ request, response })
    if (this.#queue.length === 1) this.#handleNext()
    else if (this.#queue.length > PIPELINED_REQUESTS_MAX) {
      const from = normalizeAddress(this.#socket.remoteAddress ?? '')
      this.#handlers.log.warn({ from }, 'too many pipelined requests; connection closed')
      this.#queue.length = 0
      this.#socket.destroy()
    }
  }

  /** Handles the complete requests, then responds with this fault and closes the connection. */
  reject(fault: Fault): void {
    if (this.#isRejected) return
    this.#isRejected = true
    if (!this.#last?.complete) this.#fault = fault
    this.#gracefulClose.discardInput()
    // Node removes its own listener when it emits `connect`; a response in progress would hang.
    this.#socket.on('drain', () => this.#queue[0]?.response.emit('drain'))
    if (this.#queue.length > (this.#isPartial ? 1 : 0))
      this.#gracefulClose.destroyAfter(EARLIER_REQUESTS_TIMEOUT_MS)
    else this.#sendFault()
  }

  /** Whether the body of the latest request is still arriving. */
  get #isPartial(): boolean {
    return this.#latest !== undefined && !this.#latest.complete
  }

  #sendFault(): void {
    // Already responded: the client would match a second response to its next request.
    const hasResponse = this.#isPartial && (this.#queue[0]?.response.headersSent ?? true)
    if (this.#fault && !hasResponse) this.#socket.write(rawErrorResponse(this.#fault))
    this.#gracefulClose.start()
  }

  /** One at a time, so that the responses to a client that does not read are not all buffered. */
  #handleNext(): void {
    const [next] = this.#queue
    if (!this.#socket.writable) this.#queue.length = 0
    else if (next && (next.request.complete || !this.#isRejected)) this.#handle(next)
    else if (this.#isRejected) this.#sendFault()
  }

  #handle({ request, response }: QueuedRequest): void {
    const { responseCache, handle } = this.#handlers
    // Fastify would wait for the end of a body with a content type, but an empty body has ended already.
    if (request.readableEnded) delete request.headers['content-type']
    if (!responseCache.tryRespond(request, response, this.#verified, handle)) handle(request, response)
    else if (response.writableEnded && response.socket && this.#socket.writableLength === 0) {
      // A cached response that is written, on a connection that stays open: there is nothing to wait for.
      this.#onResponseClosed()
      return
    }
    response.once('close', this.#onResponseClosed)
  }

  readonly #onResponseClosed = () => {
    this.#queue.shift()
    this.#handleNext()
  }

  /**
   * Only a client that sent `Connection: close` with a complete request sends nothing after it. Any other
   * may be sending its next request, and would see a reset instead of the response.
   */
  #close(): void {
    const isLast = this.#latest?.complete && this.#latest.headers.connection?.toLowerCase() === 'close'
    if (isLast && this.#queue.length <= 1 && !this.#isRejected)
      Socket.prototype.destroySoon.call(this.#socket)
    else {
      this.#isRejected = true
      this.#gracefulClose.start()
    }
  }
}

/** Whether closing is cheaper than reading the rest of the body to keep the connection alive. */
export const shouldCloseAfterResponse = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DISCARD_BYTES_MAX)

function ignore(): void {}

function rawErrorResponse(fault: Fault): string {
  const { status } = faults[fault.code]
  const { STATUS_CODES } = process.getBuiltinModule('node:http')
  const body = JSON.stringify(errorBody(fault))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Access-Control-Allow-Origin: *',
    `X-Request-Id: ${randomBytes(9).toString('base64url')}`,
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
