// A request to the local server of a tunnel client: writes it to a connection, and parses the response.

import { freeAfterWrite } from '../../tunnel-protocol/free-memory.ts'
import { InvalidResponse, type ResponseHead } from '../../tunnel-protocol/http/response-head.ts'
import { type ResponseHandler, ResponseParser } from '../../tunnel-protocol/http/response-parser.ts'
import { type FailureCause, readProblem } from '../../tunnel-protocol/problems.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import { formatHeaders } from '../ingress/headers/end-to-end.ts'
import type { ConnectionUser, UpstreamConnection } from './connection.ts'
import type { ConnectionPool } from './connection-pool.ts'

export interface RequestHead {
  readonly method: string
  readonly target: string
  /** Alternating names and values, without Connection unless it is an upgrade. */
  readonly headers: readonly string[]
  /** How the body that follows is sent. */
  readonly body: 'none' | 'identity' | 'chunked'
  readonly isUpgrade: boolean
  /** The visitor accepts trailers. */
  readonly acceptsTrailers: boolean
}

export interface UpstreamHandler {
  /** Another response follows. The status is any of 1xx but 101. */
  onInformational(head: ResponseHead): void
  onHead(head: ResponseHead): void
  onData(data: Buffer): void
  /** The response is complete. `last` is the rest of a body with a length. */
  onComplete(trailers: readonly string[], last?: Buffer): void
  /** More of the request body can be written. */
  onDrain(): void
  /** The local server switched protocols. */
  onUpgrade(head: ResponseHead, stream: YamuxStream): void
  /** There will be no response, or not the rest of it. */
  onError(cause: FailureCause): void
}

/** Calls its handler until the response is complete, there is an error, or it is destroyed. */
export class UpstreamRequest implements ConnectionUser, ResponseHandler {
  readonly #pool: ConnectionPool
  readonly #connection: UpstreamConnection
  readonly #handler: UpstreamHandler
  readonly #parser: ResponseParser
  readonly #isChunked: boolean
  /**
   * Whether the connection can be used again after the response. No response proves that a body was read, and
   * what a server leaves unread it parses as the next request, which would be another visitor's. After an
   * upgrade that it declined, the server may still expect another protocol.
   */
  readonly #mayReuse: boolean
  #isSent: boolean
  #isOver = false

  /** Sends the head. */
  constructor(
    pool: ConnectionPool,
    connection: UpstreamConnection,
    head: RequestHead,
    handler: UpstreamHandler,
  ) {
    this.#pool = pool
    this.#connection = connection
    this.#handler = handler
    this.#parser = new ResponseParser(head.method, head.isUpgrade, this)
    this.#isChunked = head.body === 'chunked'
    this.#mayReuse = head.body === 'none' && !head.isUpgrade
    this.#isSent = head.body === 'none'
    connection.assign(this)
    connection.stream.write(format(head), 'latin1')
  }

  /** The data belongs to the request from now on. Returns false if the caller should wait for `onDrain`. */
  write(data: Buffer): boolean {
    if (this.#isOver || data.length === 0) return true
    const { stream } = this.#connection
    if (!this.#isChunked) return stream.write(data, freeAfterWrite(data))
    stream.cork()
    stream.write(`${data.length.toString(16)}\r\n`, 'latin1')
    stream.write(data, freeAfterWrite(data))
    const isAccepting = stream.write('\r\n', 'latin1')
    stream.uncork()
    return isAccepting
  }

  /** The body is complete. */
  end(trailers: readonly string[]): void {
    if (this.#isOver) return
    this.#isSent = true
    if (this.#isChunked) this.#connection.stream.write(`0\r\n${formatHeaders(trailers)}\r\n`, 'latin1')
  }

  /** The local server notices it as a reset of its connection. */
  destroy(): void {
    if (this.#isOver) return
    this.#finish()
    this.#connection.stream.destroy()
  }

  pause(): void {
    if (!this.#isOver) this.#connection.stream.pause()
  }

  resume(): void {
    if (!this.#isOver) this.#connection.stream.resume()
  }

  /** Called by the connection, like the next three methods. */
  onReceived(received: Buffer): void {
    try {
      this.#parser.push(received)
    } catch (error) {
      this.#fail(error)
    }
  }

  onEnd(): void {
    try {
      this.#parser.end()
    } catch (error) {
      this.#fail(error)
    }
  }

  onDrain(): void {
    this.#handler.onDrain()
  }

  onClose(): void {
    this.#fail(new InvalidResponse('the connection was reset', 'closed'))
  }

  /** Called by the parser, like the next four methods. */
  onInformational(head: ResponseHead): void {
    this.#handler.onInformational(head)
  }

  onHead(head: ResponseHead): void {
    const problem = head.status === 502 ? readProblem(head.headers) : undefined
    if (problem) throw new InvalidResponse('no connection to the local server', problem)
    this.#handler.onHead(head)
  }

  onData(data: Buffer): void {
    this.#handler.onData(data)
  }

  onComplete(trailers: readonly string[], last?: Buffer): void {
    this.#finish()
    this.#handler.onComplete(trailers, last)
    // The response came before the end of the request, whose rest is not sent.
    if (!this.#isSent) this.#connection.stream.destroy()
    else if (this.#mayReuse && this.#parser.isReusable) this.#pool.put(this.#connection)
    // A server that leaves its side open is soon reset, and must not exhaust the streams until then.
    else if (this.#mayReuse) this.#connection.stream.destroySoon()
    else this.#connection.close()
  }

  onUpgrade(head: ResponseHead, rest: Buffer): void {
    this.#finish()
    const stream = this.#connection.detach()
    if (rest.length > 0) stream.unshift(rest)
    this.#handler.onUpgrade(head, stream)
  }

  #fail(error: unknown): void {
    // Errors of handlers are not ours.
    if (!(error instanceof InvalidResponse)) throw error
    if (this.#isOver) return
    this.destroy()
    this.#handler.onError(error.problem)
  }

  #finish(): void {
    this.#isOver = true
    this.#parser.stop()
    this.#connection.release()
  }
}

/** Servers read the body of these before they respond, or reject it. */
const METHODS_WITH_BODY = new Set(['POST', 'PUT', 'PATCH'])

/**
 * A body that servers do not expect is often left unread: `Connection: close` keeps them from parsing it as a
 * request. For an upload it would do harm: a server that responds before it has read the body would reset the
 * connection, and the response could be lost.
 */
const connectionOption = ({ method, body }: RequestHead) =>
  body === 'none' || METHODS_WITH_BODY.has(method) ? 'keep-alive' : 'close'

function format(head: RequestHead): string {
  const { method, target, headers, isUpgrade, acceptsTrailers } = head
  const te = acceptsTrailers ? ', TE\r\nTE: trailers' : ''
  const connection = isUpgrade ? '' : `Connection: ${connectionOption(head)}${te}\r\n`
  return `${method} ${target} HTTP/1.1\r\n${formatHeaders(headers)}${connection}\r\n`
}
