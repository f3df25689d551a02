// Proxies a request to the local server of a tunnel: streams both bodies, removes hop-by-hop headers, and
// repeats a request once that got no response and may be repeated.
import type { ClientRequest, IncomingMessage, ServerResponse } from 'node:http'
import { endToEnd, forwardedTrailers, sizeOfHead } from './headers.ts'
import type { TunnelClient } from './tunnel-client.ts'
import { startUpstreamRequest } from './upstream.ts'

export const RESPONSE_TIMEOUT_MS = 120_000
const REPEATABLE_METHODS = new Set(['GET', 'HEAD', 'OPTIONS'])
const TRANSFER_ENCODING = new Set(['transfer-encoding'])

export interface ProxyOptions {
  /** The client to send the request to: another one than `failed`, if that one did not respond. */
  pickClient(failed?: TunnelClient): TunnelClient | undefined
  /** Request headers that replace those of the client, by lower-case name. */
  readonly headers: Readonly<Record<string, string>>
  /** Rewrites response headers, given as alternating names and values. */
  rewriteResponse(headers: string[]): string[]
  /** Called with the size of the head, of each chunk of the body, and of the trailers. */
  onBytesIn(bytes: number): void
  onBytesOut(bytes: number): void
  /** Called when the response begins. */
  onResponse(status: number): void
  /** Sends an error downstream. Called only before a response has begun. */
  fail(status: 502 | 504): void
}

export function proxyRequest(
  downstream: IncomingMessage,
  response: ServerResponse,
  options: ProxyOptions,
): void {
  new ProxiedExchange(downstream, response, options).start()
}

class ProxiedExchange {
  readonly #downstream: IncomingMessage
  readonly #response: ServerResponse
  readonly #options: ProxyOptions
  readonly #headers: string[]
  readonly #hasBody: boolean
  readonly #mayRepeat: boolean
  readonly #timeout: NodeJS.Timeout
  #upstream: ClientRequest | undefined
  #isRepeated = false

  constructor(downstream: IncomingMessage, response: ServerResponse, options: ProxyOptions) {
    this.#downstream = downstream
    this.#response = response
    this.#options = options
    this.#headers = requestHeaders(downstream, options)
    this.#hasBody = hasBody(downstream)
    this.#mayRepeat = !this.#hasBody && REPEATABLE_METHODS.has(downstream.method as string)
    this.#timeout = setTimeout(() => this.#fail(504), RESPONSE_TIMEOUT_MS)
  }

  start(): void {
    const client = this.#options.pickClient()
    this.#options.onBytesIn(sizeOfRequestHead(this.#downstream, this.#headers))
    this.#response.once('close', () => this.#onClose())
    this.#send(client)
    if (this.#hasBody) this.#sendBody()
  }

  #send(client: TunnelClient | undefined): void {
    if (!client) {
      this.#fail(502)
      return
    }
    const mayReuse = this.#mayRepeat && !this.#isRepeated
    const upstream = startUpstreamRequest(client, this.#downstream, this.#headers, mayReuse)
    this.#upstream = upstream
    upstream.on('response', (incoming) => this.#onResponse(incoming))
    upstream.on('error', () => this.#onUpstreamError(upstream, client))
    // Only if the local server switches protocols without being asked to.
    upstream.on('upgrade', (_response, socket) => {
      socket.destroy()
      this.#fail(502)
    })
    if (!this.#hasBody) upstream.end()
  }

  #sendBody(): void {
    const upstream = this.#upstream
    if (!upstream) return
    const downstream = this.#downstream
    upstream.flushHeaders()
    downstream.on('data', (chunk: Buffer) => {
      this.#options.onBytesIn(chunk.length)
      // A large upload may take longer than the timeout, which counts from its last chunk.
      if (!this.#response.headersSent) this.#timeout.refresh()
      if (!upstream.write(chunk)) downstream.pause()
    })
    upstream.on('drain', () => downstream.resume())
    downstream.on('end', () => {
      this.#forwardTrailers(downstream, upstream, this.#options.onBytesIn)
      upstream.end()
    })
  }

  /** A request that may be repeated is: on another client, or on a new stream if it was sent on a reused one. */
  #onUpstreamError(upstream: ClientRequest, client: TunnelClient): void {
    if (upstream !== this.#upstream || this.#response.destroyed) return
    const mayRepeat = this.#mayRepeat && !this.#isRepeated && !this.#response.headersSent
    this.#isRepeated = true
    const other = mayRepeat ? this.#options.pickClient(client) : undefined
    if (other && (other !== client || upstream.reusedSocket)) this.#send(other)
    else this.#fail(502)
  }

  #onResponse(incoming: IncomingMessage): void {
    const response = this.#response
    // It failed in the same turn of the event loop.
    if (this.#upstream?.destroyed) return
    clearTimeout(this.#timeout)
    // The request turned out to be malformed meanwhile, and has its response.
    if (response.headersSent || response.destroyed) return void this.#upstream?.destroy()
    const { statusCode: status = 0, statusMessage: reason = '' } = incoming
    const headers = responseHeaders(incoming, this.#options)
    try {
      if (!isFinal(status)) throw new RangeError('not a final status')
      response.writeHead(status, reason, headers)
    } catch {
      // The local server is not trusted to send a valid status or reason.
      this.#fail(502)
      return
    }
    this.#options.onResponse(status)
    this.#options.onBytesOut(sizeOfHead(firstLineLength(status, reason), headers))
    this.#receiveBody(incoming)
  }

  #receiveBody(incoming: IncomingMessage): void {
    const response = this.#response
    let isStarted = false
    incoming.on('data', (chunk: Buffer) => {
      isStarted = true
      this.#options.onBytesOut(chunk.length)
      if (!response.write(chunk)) incoming.pause()
    })
    response.on('drain', () => incoming.resume())
    incoming.once('end', () => {
      isStarted = true
      this.#forwardTrailers(incoming, response, this.#options.onBytesOut)
      response.end()
    })
    // Emitted without `end` if the response is incomplete: so must be the one sent downstream.
    incoming.once('error', () => response.destroy())
    incoming.once('close', () => {
      if (!incoming.complete) response.destroy()
    })
    // An event stream may begin long before its first event.
    setImmediate(() => {
      if (!isStarted && !response.destroyed) response.flushHeaders()
    })
  }

  #forwardTrailers(
    { rawTrailers }: IncomingMessage,
    to: ClientRequest | ServerResponse,
    onBytes: (bytes: number) => void,
  ): void {
    if (rawTrailers.length === 0) return
    const trailers = forwardedTrailers(rawTrailers)
    onBytes(sizeOfHead(0, trailers.flat()) - 4)
    to.addTrailers(trailers as never)
  }

  #fail(status: 502 | 504): void {
    const response = this.#response
    clearTimeout(this.#timeout)
    this.#upstream?.destroy()
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) response.destroy()
    else this.#options.fail(status)
  }

  #onClose(): void {
    clearTimeout(this.#timeout)
    this.#upstream?.destroy()
    // The response may end before the body is read: discards the rest, so that the next request can be
    // parsed.
    if (this.#hasBody) this.#downstream.removeAllListeners('data')
    this.#downstream.resume()
  }
}

export const isFinal = (status: number) => status >= 200 && status <= 999

/** A request with a body is proxied as a request even if it asks for an upgrade: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

export function requestHeaders({ rawHeaders }: IncomingMessage, { headers }: ProxyOptions): string[] {
  const kept = endToEnd(rawHeaders, new Set(Object.keys(headers)))
  for (const name in headers) kept.push(name, headers[name] as string)
  return kept
}

export const sizeOfRequestHead = ({ method = '', url = '' }: IncomingMessage, headers: readonly string[]) =>
  sizeOfHead(method.length + url.length + ' '.length + ' HTTP/1.1'.length, headers)

export const responseHeaders = ({ rawHeaders }: IncomingMessage, { rewriteResponse }: ProxyOptions) =>
  rewriteResponse(endToEnd(rawHeaders, TRANSFER_ENCODING))

const firstLineLength = (status: number, reason: string) => `HTTP/1.1 ${status} `.length + reason.length
