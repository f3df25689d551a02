// Requests and connections from the internet: finds the tunnel by host name or port, proxies into
// it, and counts its usage.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { connectStreams } from '../connect-streams.ts'
import type { ClientAddresses } from './client-address.ts'
import { confineCookies } from './cookies.ts'
import { type ProxyOptions, proxyRequest } from './proxy.ts'
import { proxyUpgrade } from './proxy-upgrade.ts'
import type { Registry } from './registry.ts'
import { RequestQuota } from './request-quota.ts'
import { sendError, sendRawError } from './responses.ts'
import { REQUESTS_MAX, type Tunnel } from './tunnel.ts'
import type { TunnelClient } from './tunnel-client.ts'

export interface Ingress {
  onRequest(host: string, request: IncomingMessage, response: ServerResponse): void
  onUpgrade(host: string, request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** A connection to the port of a TCP tunnel. */
  onTcpConnection(host: string, socket: Socket): void
}

export interface IngressOptions {
  readonly registry: Registry
  readonly addresses: ClientAddresses
  readonly scheme: 'http' | 'https'
}

type SendError = (status: number, message: string) => void

/** nginx's status for a client that closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499
/** Paths are shown by the tunnel client; longer ones are cut. */
const PATH_CHARS_MAX = 2_000

const PROXY_ERRORS = {
  502: 'Bad gateway: the local server did not respond.',
  504: 'Gateway timeout: the local server did not respond in time.',
}

export function createIngress({ registry, addresses, scheme }: IngressOptions): Ingress {
  const quota = new RequestQuota()

  /** Acquires a slot of the tunnel, or sends an error. */
  function admit(host: string, address: string | undefined, send: SendError): ActiveRequest | undefined {
    const tunnel = registry.atHost(host)
    const { workspace = '' } = tunnel ?? {}
    if (!tunnel?.isAvailable) send(404, `No tunnel is open at ${host}.`)
    else if (tunnel.active >= REQUESTS_MAX) send(503, 'Tunnel at capacity. Retry shortly.')
    else if (!quota.acquire(workspace))
      send(503, 'The tunnels of this workspace are at capacity. Retry shortly.')
    else {
      const releaseAddress = tunnel.perAddress.acquire(address)
      if (releaseAddress)
        return new ActiveRequest(tunnel, () => {
          releaseAddress()
          quota.release(workspace)
        })
      quota.release(workspace)
      send(429, 'Too many concurrent requests from your address. Retry shortly.')
    }
    return undefined
  }

  function admitRequest(host: string, request: IncomingMessage, send: SendError): ActiveRequest | undefined {
    const active = admit(host, addresses.ofRequest(request), send)
    // A TCP tunnel has a name too, but takes no HTTP requests.
    if (active?.tunnel.type !== 'tcp') return active
    active.finish()
    send(404, `The tunnel at ${host} is a TCP tunnel. Connect to its port.`)
    return undefined
  }

  function proxyOptions(active: ActiveRequest, request: IncomingMessage, send: SendError): ProxyOptions {
    return {
      headers: {
        'x-forwarded-for': addresses.forwardedFor(request),
        'x-forwarded-host': request.headers.host ?? '',
        'x-forwarded-proto': scheme,
      },
      rewriteResponse: confineCookies,
      pickClient: (failed) => active.pickClient(failed),
      onBytesIn: (bytes) => active.countIn(bytes),
      onBytesOut: (bytes) => active.countOut(bytes),
      onResponse: (status) => active.reportRequest(request, status),
      fail(status) {
        active.reportRequest(request, status)
        send(status, PROXY_ERRORS[status])
      },
    }
  }

  return {
    onRequest(host, request, response) {
      const send: SendError = (status, message) => sendError(response, status, message)
      const active = admitRequest(host, request, send)
      if (!active) return
      response.once('close', () => {
        active.reportRequest(request, CLIENT_CLOSED_REQUEST)
        active.finish()
      })
      proxyRequest(request, response, proxyOptions(active, request, send))
    },
    onUpgrade(host, request, socket, head) {
      const send: SendError = (status, message) => sendRawError(socket, status, message)
      const active = admitRequest(host, request, send)
      if (!active) return
      socket.once('close', () => {
        active.reportRequest(request, CLIENT_CLOSED_REQUEST)
        active.finish()
      })
      proxyUpgrade(request, socket, head, proxyOptions(active, request, send))
    },
    onTcpConnection(host, socket) {
      const active = admit(host, addresses.ofPeer(socket), () => socket.destroy())
      const client = active?.pickClient()
      if (!active || !client) return
      socket.on('error', () => {})
      socket.once('close', () => {
        active.reportConnection()
        active.finish()
      })
      const stream = openStream(client)
      if (!stream) return void socket.destroy()
      connectStreams(
        socket,
        stream,
        (bytes) => active.countIn(bytes),
        (bytes) => active.countOut(bytes),
      )
    },
  }
}

/** Undefined if the connection of the client cannot carry another stream. */
function openStream(client: TunnelClient) {
  try {
    return client.openStream()
  } catch {
    return undefined
  }
}

/** A request or connection in progress. */
class ActiveRequest {
  readonly tunnel: Tunnel
  readonly #release: () => void
  readonly #startedAt = performance.now()
  #client: TunnelClient | undefined
  #bytesIn = 0
  #bytesOut = 0
  #isReported = false

  constructor(tunnel: Tunnel, release: () => void) {
    this.tunnel = tunnel
    this.#release = release
  }

  /** The client that carries it; another one if `failed` did not. */
  pickClient(failed?: TunnelClient): TunnelClient | undefined {
    const client = this.tunnel.pickClient(failed)
    if (client === this.#client) return client
    this.#client?.finish()
    client?.start()
    if (client && !this.#client) this.tunnel.count(client, { requests: 1 })
    this.#client = client
    return client
  }

  countIn(bytesIn: number): void {
    this.#bytesIn += bytesIn
    if (this.#client) this.tunnel.count(this.#client, { bytesIn })
  }

  countOut(bytesOut: number): void {
    this.#bytesOut += bytesOut
    if (this.#client) this.tunnel.count(this.#client, { bytesOut })
  }

  /** Sends the request event to the tunnel client, once. */
  reportRequest({ method = '', url = '' }: IncomingMessage, status: number): void {
    if (this.#isReported) return
    this.#isReported = true
    this.#client?.send({
      event: 'request',
      method,
      path: url.slice(0, PATH_CHARS_MAX),
      status,
      ms: this.#ms(),
    })
  }

  reportConnection(): void {
    const { bytesIn, bytesOut } = { bytesIn: this.#bytesIn, bytesOut: this.#bytesOut }
    this.#client?.send({ event: 'connection', bytesIn, bytesOut, ms: this.#ms() })
  }

  finish(): void {
    this.#client?.finish()
    this.#release()
  }

  #ms(): number {
    return Math.round((performance.now() - this.#startedAt) * 10) / 10
  }
}
