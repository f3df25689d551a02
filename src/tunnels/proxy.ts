// HTTP reverse proxy for requests and upgrades. The edge proxies from the internet into a tunnel, the tunnel
// client from the tunnel to the local server. Downstream is the side that sends the request, upstream the
// side that responds.
import { type IncomingMessage, type RequestOptions, request, type ServerResponse } from 'node:http'
import { type Duplex, pipeline } from 'node:stream'
import { connectionNames } from './header-limits.ts'
import { closeGracefully } from './responses.ts'

const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
])
/** Never removed, even if Connection names them: without them a body would be parsed as another request. */
const FRAMING = new Set(['content-length', 'transfer-encoding', 'host'])
const LISTENERS_MAX = 30
const RESPONSE_TIMEOUT_MS = 120_000
/** Limit of 1xx responses to one request. */
const INFORMATIONAL_MAX = 32

export interface ProxyOptions {
  readonly upstream: Pick<RequestOptions, 'agent' | 'host' | 'port'>
  /** Request headers that replace those of the client, by lower-case name. */
  readonly headers?: Readonly<Record<string, string>>
  /** Rewrites response headers, given as alternating names and values. */
  rewriteResponse?(headers: string[]): string[]
  /** Called with the size of the head and of each chunk of the body. */
  onBytesIn?(bytes: number): void
  onBytesOut?(bytes: number): void
  /** Called when the response of the upstream begins. */
  onResponse?(status: number): void
  /** Sends an error downstream. Called only before a response has begun. */
  fail(status: 502 | 504): void
}

/** Returns a function that aborts the request. */
export function proxyRequest(
  downstream: IncomingMessage,
  response: ServerResponse,
  options: ProxyOptions,
): () => void {
  const headers = requestHeaders(downstream, options)
  const upstreamRequest = startUpstreamRequest(downstream, headers, options)
  const timeout = setTimeout(() => fail(504), RESPONSE_TIMEOUT_MS)

  function fail(status: 502 | 504): void {
    clearTimeout(timeout)
    upstreamRequest.destroy()
    if (response.writableEnded || response.destroyed) return
    if (response.headersSent) response.destroy()
    else options.fail(status)
  }

  upstreamRequest.on('response', (upstream) => {
    if (upstreamRequest.destroyed) return
    clearTimeout(timeout)
    // The request turned out to be malformed meanwhile, and has its response.
    if (response.headersSent) return void upstreamRequest.destroy()
    const { statusCode: status = 0, statusMessage: reason = '' } = upstream
    const kept = responseHeaders(upstream, options)
    try {
      if (!isFinal(status)) throw new RangeError('not a final status')
      response.writeHead(status, reason, kept)
    } catch {
      // The upstream is not trusted to send a valid status or reason.
      fail(502)
      return
    }
    options.onResponse?.(status)
    options.onBytesOut?.(sizeOfHead(`HTTP/1.1 ${status} ${reason}`, kept))
    upstream.on('data', (chunk: Buffer) => options.onBytesOut?.(chunk.length))
    // Destroys both streams when either fails.
    pipeline(upstream, response, () => {})
  })
  upstreamRequest.on('error', () => fail(502))
  // Only if the upstream switches protocols without being asked to.
  upstreamRequest.on('upgrade', (_upstream, socket) => {
    socket.destroy()
    fail(502)
  })
  response.on('close', () => {
    clearTimeout(timeout)
    upstreamRequest.destroy()
    // The response may end before the body is read: discards the rest, so that the next request can be
    // parsed.
    downstream.off('data', count)
    downstream.unpipe(upstreamRequest)
    downstream.resume()
  })
  const count = (chunk: Buffer) => {
    options.onBytesIn?.(chunk.length)
    // A large upload may take longer than the timeout, which counts from its last chunk.
    if (!response.headersSent) timeout.refresh()
  }
  downstream.on('data', count)
  // Sent before the body: the tunnel client adds a spare connection when it sees that this one is in use.
  if (hasBody(downstream)) upstreamRequest.flushHeaders()
  downstream.pipe(upstreamRequest)
  return () => fail(502)
}

/** Proxies a WebSocket or another protocol upgrade. Returns a function that aborts it. */
export function proxyUpgrade(
  downstream: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  options: ProxyOptions,
): () => void {
  const upgrade = ['Connection', 'Upgrade', 'Upgrade', downstream.headers.upgrade ?? '']
  const headers = [...requestHeaders(downstream, options), ...upgrade]
  const upstreamRequest = startUpstreamRequest(downstream, headers, options)
  const timeout = setTimeout(() => fail(504), RESPONSE_TIMEOUT_MS)
  let hasResponse = false

  function fail(status: 502 | 504): void {
    clearTimeout(timeout)
    upstreamRequest.destroy()
    if (hasResponse) socket.destroy()
    else if (!socket.destroyed) options.fail(status)
  }
  function sendHead(upstream: IncomingMessage, headers: string[]): void {
    clearTimeout(timeout)
    hasResponse = true
    options.onResponse?.(upstream.statusCode as number)
    const text = `HTTP/1.1 ${upstream.statusCode} ${upstream.statusMessage}\r\n${formatHeaders(headers)}\r\n`
    socket.write(text, 'latin1')
    options.onBytesOut?.(text.length)
  }

  socket.on('error', () => upstreamRequest.destroy())
  socket.on('close', () => {
    clearTimeout(timeout)
    upstreamRequest.destroy()
  })
  upstreamRequest.on('error', () => fail(502))
  // The upstream declined the upgrade with an ordinary response, after which both connections are closed.
  upstreamRequest.on('response', (upstream) => {
    if (upstreamRequest.destroyed) return
    if (!isFinal(upstream.statusCode ?? 0)) {
      fail(502)
      return
    }
    upstream.once('end', () => upstreamRequest.destroy())
    sendHead(upstream, [...responseHeaders(upstream, options), 'Connection', 'close'])
    upstream.on('data', (chunk: Buffer) => options.onBytesOut?.(chunk.length))
    upstream.on('error', () => socket.destroy())
    upstream.pipe(socket, { end: false })
    upstream.once('end', () => closeGracefully(socket))
  })
  upstreamRequest.on('upgrade', (upstream, upstreamSocket, upstreamHead) => {
    upstreamSocket.on('error', () => {})
    if (upstreamRequest.destroyed) return
    sendHead(upstream, rewrite(upstream.rawHeaders, options))
    connectSockets({ socket, head }, { socket: upstreamSocket, head: upstreamHead }, options)
  })
  upstreamRequest.end()
  return () => fail(502)
}

interface UpgradedEnd {
  socket: Duplex
  /** Bytes that arrived together with the headers. */
  head: Buffer
}

function connectSockets(
  downstream: UpgradedEnd,
  upstream: UpgradedEnd,
  { onBytesIn, onBytesOut }: ProxyOptions,
): void {
  // The two pipelines below add several listeners each.
  for (const { socket } of [downstream, upstream]) socket.setMaxListeners(LISTENERS_MAX)
  for (const [from, to, onBytes] of [
    [upstream, downstream, onBytesOut],
    [downstream, upstream, onBytesIn],
  ] as const) {
    if (from.head.length > 0) {
      to.socket.write(from.head)
      onBytes?.(from.head.length)
    }
    from.socket.on('data', (chunk: Buffer) => onBytes?.(chunk.length))
    pipeline(from.socket, to.socket, () => {})
  }
}

const isFinal = (status: number) => status >= 200 && status <= 999

/** A request with a body is proxied as a request even if it asks for an upgrade: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

function startUpstreamRequest(
  { method = 'GET', url = '/' }: IncomingMessage,
  headers: string[],
  { upstream, onBytesIn }: ProxyOptions,
) {
  onBytesIn?.(sizeOfHead(`${method} ${url} HTTP/1.1`, headers))
  const started = request({
    ...upstream,
    method,
    path: url,
    headers,
    setHost: false,
    setDefaultHeaders: false,
  })
  let informational = 0
  started.on('information', () => {
    informational += 1
    if (informational > INFORMATIONAL_MAX) started.destroy(new Error('Too many informational responses.'))
  })
  return started
}

function requestHeaders({ rawHeaders }: IncomingMessage, { headers = {} }: ProxyOptions): string[] {
  return [...endToEnd(rawHeaders, new Set(Object.keys(headers))), ...Object.entries(headers).flat()]
}

const responseHeaders = ({ rawHeaders }: IncomingMessage, options: ProxyOptions) =>
  rewrite(endToEnd(rawHeaders, new Set(['transfer-encoding'])), options)

const rewrite = (headers: string[], { rewriteResponse }: ProxyOptions) =>
  rewriteResponse?.(headers) ?? headers

/** Removes hop-by-hop headers and those in `without`. Order and spelling of the others are kept. */
function endToEnd(raw: readonly string[], without: ReadonlySet<string>): string[] {
  const pairs = raw.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), name, raw[index + 1] as string] as const] : [],
  )
  const named = new Set(
    pairs.flatMap(([key, , value]) => (key === 'connection' ? connectionNames(value) : [])),
  )
  return pairs.flatMap(([key, name, value]) =>
    HOP_BY_HOP.has(key) || without.has(key) || (named.has(key) && !FRAMING.has(key)) ? [] : [name, value],
  )
}

const formatHeaders = (headers: readonly string[]) =>
  headers.reduce((text, part, index) => text + part + (index % 2 === 0 ? ': ' : '\r\n'), '')

const sizeOfHead = (firstLine: string, headers: readonly string[]) =>
  firstLine.length + 2 + formatHeaders(headers).length + 2
