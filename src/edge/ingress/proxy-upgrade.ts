// Proxies a WebSocket or another protocol upgrade to the local server of a tunnel.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connectStreams } from '../../tunnel-protocol/connect-streams.ts'
import type { ResponseHead } from '../../tunnel-protocol/http/response-head.ts'
import { type FailureCause, isForwardProblem } from '../../tunnel-protocol/problems.ts'
import type { YamuxStream } from '../../yamux/index.ts'
import { type RequestHead, type UpstreamHandler, UpstreamRequest } from '../local-server/request.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'
import { formatHead, requestHead, requestHeadBytes, responseHeaders } from './headers/forwarded.ts'
import type { HostRewrite } from './headers/host-rewrite.ts'
import { type ProxyOptions, RESPONSE_TIMEOUT_MS } from './proxy.ts'
import { findUpgradeProblem } from './response-check.ts'
import { closeGracefully } from './responses.ts'

/** When the client of a tunnel stops, upgraded connections that are idle for this long are closed. */
const IDLE_MS = 1_000

export function proxyUpgrade(
  downstream: IncomingMessage,
  socket: Duplex,
  head: Buffer,
  options: ProxyOptions,
): void {
  const client = options.pickClient()
  if (!client) {
    options.fail('no_response', false)
    return
  }
  const { headers, ...request } = requestHead(downstream, options.headers)
  const upgrade = ['Connection', 'Upgrade', 'Upgrade', downstream.headers.upgrade ?? '']
  const exchange = new UpgradeExchange({ socket, head, path: request.target }, client, options)
  exchange.send({ ...request, headers: [...headers, ...upgrade], isUpgrade: true })
}

interface UpgradingSocket {
  readonly socket: Duplex
  /** Bytes that arrived together with the headers. */
  readonly head: Buffer
  readonly path: string
}

class UpgradeExchange implements UpstreamHandler {
  readonly #downstream: UpgradingSocket
  readonly #client: UpstreamClient
  readonly #options: ProxyOptions
  readonly #timeout: NodeJS.Timeout
  readonly #hostRewrite: HostRewrite | undefined
  #upstream: UpstreamRequest | undefined
  #hasResponse = false
  readonly #onReadable = () => {
    const { socket } = this.#downstream
    if (socket.readableLength === 0) socket.read()
  }
  readonly #onEnd = () => this.#downstream.socket.destroy()

  constructor(downstream: UpgradingSocket, client: UpstreamClient, options: ProxyOptions) {
    this.#downstream = downstream
    this.#client = client
    this.#options = options
    this.#hostRewrite = options.hostRewrite(client)
    this.#timeout = setTimeout(() => this.#fail('response_timeout'), RESPONSE_TIMEOUT_MS)
  }

  send(request: RequestHead): void {
    const head = this.#hostRewrite?.rewriteRequest(request) ?? request
    const { socket } = this.#downstream
    const { connections } = this.#client
    socket.on('error', () => this.#upstream?.destroy())
    socket.on('close', () => {
      clearTimeout(this.#timeout)
      this.#upstream?.destroy()
    })
    // Reads, so that it is noticed if the visitor closes the connection. Data stays in the buffer.
    socket.on('readable', this.#onReadable)
    socket.on('end', this.#onEnd)
    this.#options.onBytesIn(requestHeadBytes(head))
    try {
      const connection = connections.open()
      this.#upstream = new UpstreamRequest(connections, connection, head, this)
      this.#options.onStream(connection.stream, false)
    } catch {
      // The session of the client is closed.
      this.#fail('no_response')
    }
  }

  /** Clients of WebSockets may take the first response for the last. */
  onInformational(): void {}

  /** The local server declines: an ordinary response, after which both connections are closed. */
  onHead(head: ResponseHead): void {
    this.#downstream.socket.on('drain', () => this.#upstream?.resume())
    this.#sendHead(head, [
      ...responseHeaders(head, this.#options.rewriteResponse, this.#hostRewrite),
      'Connection',
      'close',
    ])
  }

  onData(data: Buffer): void {
    const { socket } = this.#downstream
    if (!socket.write(data)) this.#upstream?.pause()
    this.#options.onBytesOut(data.length)
  }

  onComplete(_trailers: readonly string[], last?: Buffer): void {
    if (last) this.onData(last)
    closeGracefully(this.#downstream.socket)
  }

  onUpgrade(head: ResponseHead, stream: YamuxStream): void {
    this.#sendHead(head, this.#options.rewriteResponse(head.headers))
    const { socket, head: received } = this.#downstream
    if (received.length > 0) socket.unshift(received)
    const { onBytesIn, onBytesOut } = this.#options
    let activeAt = performance.now()
    const onBytes = (count: (bytes: number) => void) => (bytes: number) => {
      activeAt = performance.now()
      count(bytes)
    }
    connectStreams(socket, stream, onBytes(onBytesIn), onBytes(onBytesOut))
    // Unlike requests, WebSockets do not end by themselves: a client that stops waits only for those in use.
    const closeIfIdle = () => {
      const waitMs = activeAt + IDLE_MS - performance.now()
      if (waitMs <= 0) socket.destroy()
      else setTimeout(closeIfIdle, waitMs).unref()
    }
    socket.once('close', this.#client.onDraining(closeIfIdle))
  }

  onError(cause: FailureCause): void {
    this.#fail(this.#client.isClosed ? 'no_response' : cause)
    if (!isForwardProblem(cause)) this.#options.onProblem(findUpgradeProblem(this.#downstream.path, cause))
  }

  /** The request has no body. */
  onDrain(): void {}

  #sendHead(head: ResponseHead, headers: readonly string[]): void {
    const { socket } = this.#downstream
    clearTimeout(this.#timeout)
    socket.off('readable', this.#onReadable)
    socket.off('end', this.#onEnd)
    this.#hasResponse = true
    this.#options.onResponse(head.status)
    const text = formatHead(head, headers)
    socket.write(text, 'latin1')
    this.#options.onBytesOut(text.length)
  }

  #fail(cause: FailureCause): void {
    const { socket } = this.#downstream
    clearTimeout(this.#timeout)
    this.#upstream?.destroy()
    if (this.#hasResponse) socket.destroy()
    else if (!socket.destroyed) this.#options.fail(cause, false)
  }
}
