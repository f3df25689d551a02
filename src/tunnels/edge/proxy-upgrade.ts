// Proxies a WebSocket or another protocol upgrade to the local server of a tunnel.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { type Duplex, pipeline } from 'node:stream'
import { formatHeaders } from './headers.ts'
import {
  isFinal,
  type ProxyOptions,
  RESPONSE_TIMEOUT_MS,
  requestHeaders,
  responseHeaders,
  sizeOfRequestHead,
} from './proxy.ts'
import { closeGracefully } from './responses.ts'
import { startUpstreamRequest } from './upstream.ts'

const LISTENERS_MAX = 30

export function proxyUpgrade(
  downstream: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  options: ProxyOptions,
): void {
  const client = options.pickClient()
  if (!client) {
    options.fail(502)
    return
  }
  const headers = requestHeaders(downstream, options)
  headers.push('Connection', 'Upgrade', 'Upgrade', downstream.headers.upgrade ?? '')
  options.onBytesIn(sizeOfRequestHead(downstream, headers))
  const upstream = startUpstreamRequest(client, downstream, headers, false)
  new UpgradeExchange({ socket, head }, upstream, options)
  upstream.end()
}

interface UpgradedEnd {
  socket: Duplex
  /** Bytes that arrived together with the headers. */
  head: Buffer
}

class UpgradeExchange {
  readonly #downstream: UpgradedEnd
  readonly #upstream: ClientRequest
  readonly #options: ProxyOptions
  readonly #timeout: NodeJS.Timeout
  #hasResponse = false

  constructor(downstream: UpgradedEnd, upstream: ClientRequest, options: ProxyOptions) {
    this.#downstream = downstream
    this.#upstream = upstream
    this.#options = options
    this.#timeout = setTimeout(() => this.#fail(504), RESPONSE_TIMEOUT_MS)
    downstream.socket.on('error', () => upstream.destroy())
    downstream.socket.on('close', () => {
      clearTimeout(this.#timeout)
      upstream.destroy()
    })
    upstream.on('error', () => this.#fail(502))
    upstream.on('response', (response) => this.#onDeclined(response))
    upstream.on('upgrade', (response, socket, head) => this.#onAccepted(response, { socket, head }))
  }

  /** An ordinary response, after which both connections are closed. */
  #onDeclined(response: IncomingMessage): void {
    const { socket } = this.#downstream
    if (this.#upstream.destroyed) return
    if (!isFinal(response.statusCode ?? 0)) {
      this.#fail(502)
      return
    }
    response.once('end', () => this.#upstream.destroy())
    this.#sendHead(response, [...responseHeaders(response, this.#options), 'Connection', 'close'])
    response.on('data', (chunk: Buffer) => this.#options.onBytesOut(chunk.length))
    response.on('error', () => socket.destroy())
    response.pipe(socket, { end: false })
    response.once('end', () => closeGracefully(socket))
  }

  #onAccepted(response: IncomingMessage, upstream: UpgradedEnd): void {
    upstream.socket.on('error', () => {})
    if (this.#upstream.destroyed) return
    this.#sendHead(response, this.#options.rewriteResponse(response.rawHeaders))
    connectSockets(this.#downstream, upstream, this.#options)
  }

  #sendHead(response: IncomingMessage, headers: string[]): void {
    clearTimeout(this.#timeout)
    this.#hasResponse = true
    const { statusCode = 0, statusMessage } = response
    this.#options.onResponse(statusCode)
    const text = `HTTP/1.1 ${statusCode} ${statusMessage}\r\n${formatHeaders(headers)}\r\n`
    this.#downstream.socket.write(text, 'latin1')
    this.#options.onBytesOut(text.length)
  }

  #fail(status: 502 | 504): void {
    const { socket } = this.#downstream
    clearTimeout(this.#timeout)
    this.#upstream.destroy()
    if (this.#hasResponse) socket.destroy()
    else if (!socket.destroyed) this.#options.fail(status)
  }
}

/** Copies bytes in both directions; each direction may end before the other. */
export function connectSockets(
  downstream: UpgradedEnd,
  upstream: UpgradedEnd,
  { onBytesIn, onBytesOut }: Pick<ProxyOptions, 'onBytesIn' | 'onBytesOut'>,
): void {
  // The two pipelines below add several listeners each.
  for (const { socket } of [downstream, upstream]) socket.setMaxListeners(LISTENERS_MAX)
  for (const [from, to, onBytes] of [
    [upstream, downstream, onBytesOut],
    [downstream, upstream, onBytesIn],
  ] as const) {
    if (from.head.length > 0) {
      to.socket.write(from.head)
      onBytes(from.head.length)
    }
    from.socket.on('data', (chunk: Buffer) => onBytes(chunk.length))
    pipeline(from.socket, to.socket, () => {})
  }
}
