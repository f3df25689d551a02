// Proxies a request to the local server of a tunnel: streams both bodies, removes hop-by-hop headers, and
// retries a safe request once if it got no response.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { freeAfterWrite } from '../../tunnel-protocol/free-memory.ts'
import type { ResponseHead } from '../../tunnel-protocol/http/response-head.ts'
import type { FailureCause, RequestProblem } from '../../tunnel-protocol/problems.ts'
import { compact, type YamuxStream } from '../../yamux/index.ts'
import type { UpstreamConnection } from '../local-server/connection.ts'
import { type RequestHead, type UpstreamHandler, UpstreamRequest } from '../local-server/request.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'
import { Expectation } from './expectation.ts'
import { headBytes, headersBytes } from './headers/end-to-end.ts'
import {
  expectsContinue,
  formatHead,
  informationalHeaders,
  mayGetInformational,
  requestHead,
  requestHeadBytes,
  responseHeaders,
  responseTrailerHeader,
  statusLineLength,
} from './headers/forwarded.ts'
import type { HostRewrite } from './headers/host-rewrite.ts'
import { forwardedTrailers, headerPairs } from './headers/trailers.ts'
import { findProblem, mayHaveProblem } from './response-check.ts'

export const RESPONSE_TIMEOUT_MS = 120_000
const RETRYABLE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
/**
 * The last chunk of a body, up to this size, is sent as a string: Node joins it with the head in one write.
 */
const SMALL_BYTES_MAX = 4_096

export interface ProxyOptions {
  /** Prefers a client other than `failed`, which did not respond; returns it only if there is no other. */
  pickClient(failed?: UpstreamClient): UpstreamClient | undefined
  /** Headers that replace those of the downstream request, by lower-case name; undefined removes them. */
  readonly headers: Readonly<Record<string, string | undefined>>
  /** Rewrites response headers, which are alternating names and values. */
  rewriteResponse(headers: string[]): string[]
  /** Undefined if the local server of the client gets the host of the tunnel. */
  hostRewrite(client: UpstreamClient): HostRewrite | undefined
  /**
   * Called with the stream that carries the request, after its head was written. If the stream is reset, the
   * request is retried if possible. `mayRetry` is false once it was retried here.
   */
  onStream(stream: YamuxStream, mayRetry: boolean): void
  /** Called with the size of the head, of each chunk of the body, and of the trailers. */
  onBytesIn(bytes: number): void
  onBytesOut(bytes: number): void
  /** Called when the response begins. */
  onResponse(status: number): void
  /** The response shows why the local server rejects the tunnel: its host, or TLS expected. */
  onProblem(problem: RequestProblem): void
  /** An earlier attempt at this request failed, and has counted its head. */
  readonly isRetry: boolean
  /**
   * Sends an error downstream, or retries the request at another edge or under changed access rules. Called
   * only before a response has begun. `isRetryable`: the method is safe and there is no body.
   */
  fail(cause: FailureCause, isRetryable: boolean): void
}

export function proxyRequest(
  downstream: IncomingMessage,
  response: ServerResponse,
  options: ProxyOptions,
): void {
  new ProxiedExchange(downstream, response, options).start()
}

class ProxiedExchange implements UpstreamHandler {
  readonly #downstream: IncomingMessage
  readonly #response: ServerResponse
  readonly #options: ProxyOptions
  readonly #head: RequestHead
  readonly #isRetryable: boolean
  readonly #timeout: NodeJS.Timeout
  #upstream: UpstreamRequest | undefined
  #client: UpstreamClient | undefined
  #hostRewrite: HostRewrite | undefined
  #expectation: Expectation | undefined
  #isConnectionReused = false
  #isRetried = false
  #isBodyStarted = false
  /** Status of a response whose first chunk may show why the local server rejects the tunnel. */
  #statusToCheck: number | undefined

  constructor(downstream: IncomingMessage, response: ServerResponse, options: ProxyOptions) {
    this.#downstream = downstream
    this.#response = response
    this.#options = options
    this.#head = requestHead(downstream, options.headers)
    this.#isRetryable = this.#head.body === 'none' && RETRYABLE_METHODS.has(this.#head.method)
    this.#timeout = setTimeout(() => this.#fail('response_timeout'), RESPONSE_TIMEOUT_MS)
  }

  start(): void {
    const client = this.#options.pickClient()
    if (!this.#options.isRetry) this.#options.onBytesIn(requestHeadBytes(this.#head))
    this.#response.once('close', () => this.#onClose())
    this.#response.on('drain', () => this.#upstream?.resume())
    this.#send(client)
    if (expectsContinue(this.#downstream))
      this.#expectation = new Expectation(this.#downstream, this.#response, () => this.#sendBody())
    else if (this.#head.body !== 'none') this.#sendBody()
  }

  #send(client: UpstreamClient | undefined): void {
    this.#client = client
    const connection = client && this.#connect(client)
    if (!connection) return void this.#fail('no_response')
    this.#isConnectionReused = connection.isUsed
    this.#hostRewrite = this.#options.hostRewrite(client)
    const head = this.#hostRewrite?.rewriteRequest(this.#head) ?? this.#head
    this.#upstream = new UpstreamRequest(client.connections, connection, head, this)
    this.#options.onStream(connection.stream, this.#isRetryable && !this.#isRetried)
  }

  /**
   * Only requests that may be retried are sent over a used connection, because the local server may be
   * closing it at the same time. Undefined if the session of the client is closed.
   */
  #connect({ connections }: UpstreamClient): UpstreamConnection | undefined {
    try {
      const idle = this.#isRetryable && !this.#isRetried ? connections.takeIdle() : undefined
      return idle ?? connections.open()
    } catch {
      return undefined
    }
  }

  #sendBody(): void {
    const downstream = this.#downstream
    downstream.on('data', (chunk: Buffer) => {
      const bytes = chunk.length
      // A large upload may take longer than the timeout, which counts from its last chunk.
      if (!this.#response.headersSent) this.#timeout.refresh()
      if (this.#upstream?.write(chunk) === false) downstream.pause()
      this.#options.onBytesIn(bytes)
    })
    downstream.on('end', () => {
      const trailers = forwardedTrailers(downstream.rawTrailers)
      this.#countTrailers(trailers, this.#options.onBytesIn)
      this.#upstream?.end(trailers)
    })
  }

  onDrain(): void {
    this.#downstream.resume()
  }

  /** Retries a request if possible: at another client, or on a new connection if its own was reused. */
  onError(cause: FailureCause): void {
    if (this.#response.destroyed) return
    const mayRetry = this.#isRetryable && !this.#isRetried && !this.#response.headersSent
    this.#isRetried = true
    const other = mayRetry ? this.#options.pickClient(this.#client) : undefined
    if (other && (other !== this.#client || this.#isConnectionReused)) this.#send(other)
    else this.#fail(this.#client?.isClosed ? 'no_response' : cause)
  }

  onInformational(head: ResponseHead): void {
    if (this.#response.headersSent || this.#response.destroyed) return
    // The local server is working on the request.
    this.#timeout.refresh()
    // Some servers send 100 unasked.
    if (head.status === 100) this.#options.onBytesOut(this.#expectation?.continue() ?? 0)
    else if (mayGetInformational(this.#downstream)) this.#sendInformational(head)
  }

  /**
   * Written to the socket, because Node 24 has no method for these responses. No other response is in
   * progress: pipelined requests are queued.
   */
  #sendInformational(head: ResponseHead): void {
    const text = formatHead(head, informationalHeaders(head))
    this.#downstream.socket.write(text, 'latin1')
    this.#options.onBytesOut(text.length)
  }

  onHead(head: ResponseHead): void {
    const response = this.#response
    clearTimeout(this.#timeout)
    // An error response was already sent, because the rest of the request was malformed.
    if (response.headersSent || response.destroyed) return void this.#upstream?.destroy()
    const headers = responseHeaders(head, this.#options.rewriteResponse, this.#hostRewrite)
    headers.push(...responseTrailerHeader(this.#downstream, head))
    try {
      response.writeHead(head.status, head.reason, headers)
    } catch {
      // Node rejects a header of the local server.
      return void this.#fail('invalid_response')
    }
    this.#options.onResponse(head.status)
    if (mayHaveProblem(head)) this.#statusToCheck = head.status
    this.#options.onBytesOut(headBytes(statusLineLength(head), headers))
    process.nextTick(() => this.#flushHead())
  }

  /**
   * Corks the socket here; otherwise Node corks it until the next tick. By then, all data of this read from
   * the tunnel client is queued, for many visitors. If the process were suspended in between, it would send
   * all of that when it resumes, even after its lease has expired.
   */
  onData(data: Buffer): void {
    const response = this.#response
    this.#isBodyStarted = true
    if (this.#statusToCheck !== undefined) this.#check(this.#statusToCheck, data)
    const chunk = response.writableLength > 0 ? compact(data) : data
    this.#downstream.socket.cork()
    if (!response.write(chunk, freeAfterWrite(chunk))) this.#upstream?.pause()
    this.#downstream.socket.uncork()
    this.#options.onBytesOut(data.length)
  }

  onComplete(trailers: readonly string[], last?: Buffer): void {
    const isSmall = last !== undefined && last.length <= SMALL_BYTES_MAX
    this.#isBodyStarted = true
    const forwarded = forwardedTrailers(trailers)
    this.#countTrailers(forwarded, this.#options.onBytesOut)
    if (forwarded.length > 0) this.#response.addTrailers(headerPairs(forwarded))
    if (isSmall) {
      if (this.#statusToCheck !== undefined) this.#check(this.#statusToCheck, last)
      this.#options.onBytesOut(last.length)
      this.#response.end(last.toString('latin1'), 'latin1')
    } else {
      this.#downstream.socket.cork()
      if (last) this.onData(last)
      this.#response.end()
      this.#downstream.socket.uncork()
    }
  }

  /** Never called: the parser rejects an upgrade that the request did not ask for. */
  onUpgrade(): void {}

  #check(status: number, body: Buffer): void {
    this.#statusToCheck = undefined
    const problem = findProblem(status, this.#head.target, body)
    if (problem) this.#options.onProblem(problem)
  }

  /** The head of an event stream must not wait for its first event. */
  #flushHead(): void {
    if (!this.#isBodyStarted && !this.#response.destroyed) this.#response.flushHeaders()
  }

  #countTrailers(trailers: readonly string[], onBytes: (bytes: number) => void): void {
    if (trailers.length > 0) onBytes(headersBytes(trailers))
  }

  #fail(cause: FailureCause): void {
    const response = this.#response
    clearTimeout(this.#timeout)
    this.#upstream?.destroy()
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) response.destroy()
    else this.#options.fail(cause, this.#isRetryable)
  }

  #onClose(): void {
    clearTimeout(this.#timeout)
    this.#upstream?.destroy()
    // The response may end before the body is read: discards the rest, so that the next request can be
    // parsed.
    this.#expectation?.close()
    if (this.#head.body !== 'none') this.#downstream.removeAllListeners('data')
    this.#downstream.resume()
  }
}
