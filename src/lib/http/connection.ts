// A connection to an HTTP server. Its requests are handled one at a time and in order, each gets at most one
// response, and a rejection is sent after the responses to the requests before it. Then the connection is
// closed gracefully, so that the client can read the last response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { Socket } from 'node:net'
import { GracefulClose, type GracefulCloseOptions } from '../net/graceful-close.ts'

/** Includes the request in progress. Bounds the memory of a client that pipelines and never reads. */
const PIPELINED_REQUESTS_MAX = 32

/** A request without a complete response, or something else that has to wait for its turn. */
export interface QueuedRequest {
  readonly request?: IncomingMessage
  readonly response?: ServerResponse
  /** Runs instead of `handle`. Nothing is handled after it. */
  run?(): void
}

interface HttpConnectionOptions extends GracefulCloseOptions {
  /** How long requests in progress may take after the connection is rejected. */
  readonly earlierRequestsTimeoutMs?: number
}

export abstract class HttpConnection<Rejection> {
  readonly socket: Socket
  /** The first is in progress, the others wait. */
  protected readonly queue: QueuedRequest[] = []
  readonly #options: HttpConnectionOptions
  readonly #gracefulClose: GracefulClose
  #latest: IncomingMessage | undefined
  /** The last request that gets a response. What follows it is ignored. */
  #last: IncomingMessage | undefined
  #isRejected = false

  constructor(socket: Socket, options: HttpConnectionOptions) {
    this.socket = socket
    this.#options = options
    this.#gracefulClose = new GracefulClose(socket, options)
    // Node removes its own listener when a request asks for an upgrade or CONNECT; an unhandled `error` would
    // end the process.
    socket.on('error', ignore)
    // Node calls this after the last response, while the client may still be sending.
    socket.destroySoon = () => this.#closeAfterLastResponse()
  }

  /** Returns true if the response is complete and written already. */
  protected abstract handle(request: IncomingMessage, response: ServerResponse): boolean

  /** Writes the rejection to the socket, and closes it gracefully. */
  protected abstract sendRejection(rejection: Rejection): void

  /** Sends the rejection as the response to a request. Returns false to use `sendRejection` instead. */
  protected respondWith(_response: ServerResponse, _rejection: Rejection): boolean {
    return false
  }

  /** Whether queuing the request exceeds a limit. Then the connection is destroyed. */
  protected exceedsLimit(_waiting: QueuedRequest): boolean {
    return false
  }

  protected onTooManyRequests(): void {}

  /** Call this before the request is queued. */
  closeAfter(request: IncomingMessage): void {
    this.#last ??= request
  }

  enqueue(queued: QueuedRequest): void {
    // The rest of a buffer is parsed although its first part was rejected.
    if (this.#isRejected || this.socket.destroyed) return
    const { request, response } = queued
    if (this.#last && this.#last !== request) {
      this.stop()
      this.#gracefulClose.discardInput()
      return
    }
    if (this.#last && response) response.shouldKeepAlive = false
    if (request) this.#latest = request
    if (!response) this.#forwardDrain()
    this.queue.push(queued)
    if (this.queue.length === 1) this.#runNext()
    else if (this.queue.length > PIPELINED_REQUESTS_MAX || this.exceedsLimit(queued)) {
      this.onTooManyRequests()
      this.queue.length = 0
      this.socket.destroy()
    }
  }

  /** Handles the complete requests, then responds with the rejection and closes the connection. */
  reject(rejection: Rejection): void {
    if (this.#isRejected) return
    this.#isRejected = true
    this.#gracefulClose.discardInput()
    this.#forwardDrain()
    if (this.#last?.complete) return
    const { earlierRequestsTimeoutMs } = this.#options
    const [first] = this.queue
    const isPartial = this.#latest !== undefined && !this.#latest.complete
    const isLatestQueued = this.#latest !== undefined && this.queue.at(-1)?.request === this.#latest
    const run = () => this.sendRejection(rejection)
    if (!isPartial || (isLatestQueued && this.queue.length > 1)) {
      if (isPartial) this.queue.pop()
      this.queue.push({ run })
      if (this.queue.length === 1) this.#runNext()
      else if (earlierRequestsTimeoutMs) this.#gracefulClose.destroyAfter(earlierRequestsTimeoutMs)
    } else if (isLatestQueued && first?.response && !first.response.headersSent) {
      first.response.shouldKeepAlive = false
      if (!this.respondWith(first.response, rejection)) run()
    }
    // The request has a response: the client would match a second one to its next request.
    else this.closeGracefully()
  }

  protected closeGracefully(): void {
    this.#gracefulClose.start()
  }

  /** Ignores what the HTTP parser finds from now on. */
  protected stop(): void {
    this.#isRejected = true
  }

  /** Drops references to requests, because the socket may outlive them. */
  protected forget(): void {
    this.queue.length = 0
    this.#latest = undefined
  }

  #runNext(): void {
    const [next] = this.queue
    if (!next) return
    if (!this.socket.writable) {
      this.queue.length = 0
      return
    }
    const { request, response } = next
    if (next.run || !request || !response) next.run?.()
    else if (this.handle(request, response)) this.#onResponseClosed()
    else response.once('close', this.#onResponseClosed)
  }

  readonly #onResponseClosed = () => {
    this.queue.shift()
    this.#runNext()
  }

  /** Node removes its own listener with `connect` and `upgrade`; a response in progress would hang. */
  #forwardDrain(): void {
    this.socket.on('drain', () => this.queue[0]?.response?.emit('drain'))
  }

  /**
   * Only a client that sent `Connection: close` with a complete request sends nothing after it. Any other
   * may be sending its next request, and would see a reset instead of the response.
   */
  #closeAfterLastResponse(): void {
    const isLast = this.#latest?.complete && this.#latest.headers.connection?.toLowerCase() === 'close'
    if (isLast && this.queue.length <= 1 && !this.#isRejected) Socket.prototype.destroySoon.call(this.socket)
    else {
      this.#isRejected = true
      this.closeGracefully()
    }
  }
}

function ignore(): void {}
