// One client connection: answers its requests one at a time and in order, and closes it so that the client can read the
// last response.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import type { Logger } from 'pino'
import { faults } from '../../contract/faults.ts'
import type { Fault } from '../../domain/fault.ts'
import type { ResponseCache } from '../response-cache/response-cache.ts'
import { bodyOf } from './errors.ts'

/** Without a bound, a client that sends and never reads would fill the memory with responses. */
const UNANSWERED_MAX = 32
/**
 * How much of what a refused client is still sending is read and discarded. Closing a socket with unread input resets the
 * connection, and a client that is still writing then sees the reset instead of the response. Twice the largest body that
 * any operation accepts: a client that exceeds a limit learns of it, one that sends without end is cut off.
 */
export const DISCARD_BYTES_MAX = 8 * 1024 * 1024
/** How long a refused client may take to close its end. */
const LINGER_MS = 5_000
/** How long the requests before a refused one may take; longer than any statement of theirs. */
const EARLIER_REQUESTS_MS = 10_000

export interface RequestHandlers {
  /** Consulted first. */
  responseCache: ResponseCache
  handle: RequestListener
  log: Logger
}

export class Connection {
  readonly #socket: Socket
  readonly #handlers: RequestHandlers
  /** Requests without a complete response: the first is in progress, the others wait. */
  readonly #unanswered: [request: IncomingMessage, response: ServerResponse][] = []
  #latest: IncomingMessage | undefined
  /** Input is discarded, and the connection closed after the responses to the requests that arrived whole. */
  #refused = false
  /** Sent after those responses. */
  #fault: Fault | undefined
  #deadline: NodeJS.Timeout | undefined

  constructor(socket: Socket, handlers: RequestHandlers) {
    this.#socket = socket
    this.#handlers = handlers
    // Node removes its own listener when it emits `connect`; a socket without one ends the process when it fails.
    socket.on('error', ignore)
    // Node calls this after the last response, while a refused body may still be arriving.
    socket.destroySoon = () => this.#close()
  }

  onRequest(request: IncomingMessage, response: ServerResponse): void {
    const unanswered = this.#unanswered
    this.#latest = request
    unanswered.push([request, response])
    if (unanswered.length === 1) this.#answerNext()
    else if (unanswered.length > UNANSWERED_MAX) {
      this.#handlers.log.warn(
        { from: this.#socket.remoteAddress },
        'too many pipelined requests; connection closed',
      )
      unanswered.length = 0
      this.#socket.destroy()
    }
  }

  /** Answers what arrived whole, then responds with this fault, and closes the connection. */
  refuse(fault: Fault): void {
    if (this.#refused) return
    this.#refused = true
    this.#fault = fault
    this.#discardInput()
    // Node removes its own listener when it emits `connect`; a response in progress would wait for it forever.
    this.#socket.on('drain', () => this.#unanswered[0]?.[1].emit('drain'))
    const isPartial = this.#latest !== undefined && !this.#latest.complete
    if (this.#unanswered.length > (isPartial ? 1 : 0)) this.#closeWithin(EARLIER_REQUESTS_MS)
    else this.#sendFault()
  }

  #sendFault(): void {
    const isPartial = this.#latest !== undefined && !this.#latest.complete
    // A partial request that has its response already gets no second one: it would count as that of the next request.
    const hasResponse = isPartial && (this.#unanswered[0]?.[1].headersSent ?? true)
    if (this.#fault && !hasResponse) this.#socket.write(responseTo(this.#fault))
    this.#linger()
  }

  /** One at a time: a response that nobody reads delays those after it, instead of all being kept in memory. */
  #answerNext(): void {
    const { responseCache, handle } = this.#handlers
    const [first] = this.#unanswered
    if (!this.#socket.writable) this.#unanswered.length = 0
    else if (first && (first[0].complete || !this.#refused)) {
      const [request, response] = first
      // Fastify would wait for the end of a body that has a type, and this one has ended before it began.
      if (request.readableEnded) delete request.headers['content-type']
      if (!responseCache.tryRespond(request, response, handle)) handle(request, response)
      else if (response.writableEnded && response.socket && this.#socket.writableLength === 0) {
        // Written already, and the connection stays open: its `close` need not be waited for.
        this.#onResponseClosed()
        return
      }
      response.once('close', this.#onResponseClosed)
    } else if (this.#refused) this.#sendFault()
  }

  readonly #onResponseClosed = () => {
    this.#unanswered.shift()
    this.#answerNext()
  }

  /**
   * Only a client that asked for it, in a request that arrived whole, sends nothing after it. Any other may be writing its
   * next request, and a socket closed under it would be reset before the client reads the response.
   */
  #close(): void {
    const isLast = this.#latest?.complete && this.#latest.headers.connection?.toLowerCase() === 'close'
    if (isLast && this.#unanswered.length <= 1 && !this.#refused)
      Socket.prototype.destroySoon.call(this.#socket)
    else this.#linger()
  }

  /** Closes our end, and the connection when the client has closed its end as well. */
  #linger(): void {
    if (!this.#refused) this.#discardInput()
    this.#refused = true
    this.#socket.end()
    this.#closeWithin(LINGER_MS)
  }

  /** Takes the input from the parser: none of it is interpreted any more. */
  #discardInput(): void {
    const socket = this.#socket
    let left = DISCARD_BYTES_MAX
    socket.removeAllListeners('data')
    socket.on('data', (chunk: Buffer) => {
      left -= chunk.length
      if (left < 0) socket.destroy()
    })
    socket.resume()
  }

  #closeWithin(ms: number): void {
    if (this.#deadline) clearTimeout(this.#deadline)
    else this.#socket.once('close', () => clearTimeout(this.#deadline))
    this.#deadline = setTimeout(() => this.#socket.destroy(), ms).unref()
  }
}

/** Whether a response to this request leaves more of its body unread than is worth reading to keep the connection. */
export const leavesMuchUnread = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DISCARD_BYTES_MAX)

function ignore(): void {}

function responseTo(fault: Fault): string {
  const { status } = faults[fault.code]
  const { STATUS_CODES } = process.getBuiltinModule('node:http')
  const body = JSON.stringify(bodyOf(fault))
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
