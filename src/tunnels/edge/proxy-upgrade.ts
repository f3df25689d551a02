// Proxies a WebSocket or another protocol upgrade to the local server of a tunnel.
import type { ClientRequest, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connectStreams } from '../connect-streams.ts'
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

interface UpgradedSocket {
  socket: Duplex
  /** Bytes that arrived together with the headers. */
  head: Buffer
}

class UpgradeExchange {
  readonly #downstream: UpgradedSocket
  readonly #upstream: ClientRequest
  readonly #options: ProxyOptions
  readonly #timeout: NodeJS.Timeout
  #hasResponse = false
  readonly #onReadable = () => {
    const { socket } = this.#downstream
    if (socket.readableLength === 0) socket.read()
  }
  readonly #onEnd = () => this.#downstream.socket.destroy()

  constructor(downstream: UpgradedSocket, upstream: ClientRequest, options: ProxyOptions) {
    this.#downstream = downstream
    this.#upstream = upstream
    this.#options = options
    this.#timeout = setTimeout(() => this.#fail(504), RESPONSE_TIMEOUT_MS)
    downstream.socket.on('error', () => upstream.destroy())
    downstream.socket.on('close', () => {
      clearTimeout(this.#timeout)
      upstream.destroy()
    })
    // Reads, so that the end of a client that gave up is noticed; what it sends stays in the buffer.
    downstream.socket.on('readable', this.#onReadable)
    downstream.socket.on('end', this.#onEnd)
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

  #onAccepted(response: IncomingMessage, upstream: UpgradedSocket): void {
    upstream.socket.on('error', () => {})
    if (this.#upstream.destroyed) return
    this.#sendHead(response, this.#options.rewriteResponse(response.rawHeaders))
    const { socket, head } = this.#downstream
    // Bytes that arrived together with the headers.
    if (head.length > 0) socket.unshift(head)
    if (upstream.head.length > 0) upstream.socket.unshift(upstream.head)
    connectStreams(socket, upstream.socket, this.#options.onBytesIn, this.#options.onBytesOut)
  }

  #sendHead(response: IncomingMessage, headers: string[]): void {
    clearTimeout(this.#timeout)
    this.#downstream.socket.off('readable', this.#onReadable)
    this.#downstream.socket.off('end', this.#onEnd)
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
