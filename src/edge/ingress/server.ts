// Requests and connections from the internet: finds the tunnel by host name or port, proxies into
// it, and counts its usage.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { EdgeInstruments } from '../../lib/metrics/edge-instruments.ts'
import { normalizeOrigin } from '../../lib/net/host-header.ts'
import { connectStreams, reset } from '../../tunnel-protocol/connect-streams.ts'
import { quotaExceeded } from '../access/denial.ts'
import { causes, type VisitorError } from '../error-responses/causes.ts'
import type { Registry } from '../registry.ts'
import type { Tunnel } from '../tunnel.ts'
import type { UpstreamClient } from '../upstream-client.ts'
import { ActiveRequest, type Visitor } from './active-request.ts'
import type { ClientAddresses } from './client-address.ts'
import { confineCookies } from './cookies.ts'
import { HostRewrite } from './host-rewrite.ts'
import { type ProxyOptions, proxyRequest } from './proxy.ts'
import { proxyUpgrade } from './proxy-upgrade.ts'
import { sendError, sendRawError } from './responses.ts'

export interface Ingress {
  onRequest(host: string, request: IncomingMessage, response: ServerResponse): void
  onUpgrade(host: string, request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** A connection to the port of a TCP tunnel. */
  onTcpConnection(host: string, socket: Socket): void
}

interface IngressOptions {
  readonly registry: Registry
  readonly addresses: ClientAddresses
  readonly scheme: 'http' | 'https'
  readonly instruments: EdgeInstruments
  /** Until when the traffic of a workspace is rejected; undefined if it is accepted. */
  quotaReachedUntil(workspace: string): number | undefined
}

/** A request whose response has not begun. */
interface PendingRequest {
  isPending(): boolean
  readonly sendError: SendError
}

type OpenTunnel = Tunnel<UpstreamClient>

type SendError = (error: VisitorError) => void

/** nginx's status for a client that closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499

export function createIngress(options: IngressOptions): Ingress {
  const { registry, addresses, scheme, instruments } = options
  /** Acquires a slot of the tunnel, or sends an error. */
  function admit(
    host: string,
    tunnel: OpenTunnel | undefined,
    visitor: Visitor,
    send: SendError,
  ): ActiveRequest | undefined {
    const { address } = visitor
    const releaseAddress = tunnel?.perAddress.acquire(address)
    if (!tunnel?.isAvailable)
      send({ cause: 'tunnel_not_found', detail: `The host of the request is ${host}.` })
    else if (!releaseAddress) send({ cause: 'too_many_requests' })
    else if (!tunnel.requests.makeRoom(address)) send({ cause: 'tunnel_busy' })
    else if (!tunnel.load.requests.makeRoom(address)) send({ cause: 'workspace_busy' })
    else {
      const active = new ActiveRequest({ tunnel, visitor, instruments, onFinished: releaseAddress })
      tunnel.progress.start()
      return active
    }
    releaseAddress?.()
    return undefined
  }

  /**
   * Calls `proceed` with the tunnel if its access rules allow the request, at once if no password is
   * verified.
   */
  function authorize(
    host: string,
    request: IncomingMessage,
    pending: PendingRequest,
    proceed: (tunnel: OpenTunnel | undefined) => void,
  ): void {
    const tunnel = registry.atHost(host)
    const access = tunnel?.access
    const until = tunnel && options.quotaReachedUntil(tunnel.workspace)
    if (until !== undefined) {
      pending.sendError(quotaExceeded(until, Date.now()))
      return
    }
    const result = access?.hasRules ? access.check(request, addresses.ofRequest(request)) : undefined
    if (result instanceof Promise)
      void result.then((denial) => {
        if (!pending.isPending()) return
        if (denial) pending.sendError(denial)
        else authorize(host, request, pending, proceed)
      })
    else if (result) pending.sendError(result)
    else proceed(tunnel)
  }

  function admitRequest(
    host: string,
    tunnel: OpenTunnel | undefined,
    visitor: Visitor,
    send: SendError,
  ): ActiveRequest | undefined {
    // A TCP tunnel has a name too, but takes no HTTP requests.
    if (tunnel?.type !== 'tcp') return admit(host, tunnel, visitor, send)
    send({ cause: 'tcp_tunnel' })
    return undefined
  }

  function proxyOptions(active: ActiveRequest, request: IncomingMessage, send: SendError): ProxyOptions {
    return {
      headers: {
        'x-forwarded-for': addresses.forwardedFor(request),
        'x-forwarded-host': request.headers.host ?? '',
        'x-forwarded-proto': scheme,
        // Removed, because some local servers prefer this header of the client to the headers above.
        forwarded: undefined,
        // The password was for the edge.
        ...(active.tunnel.access.needsPassword && { authorization: undefined }),
      },
      rewriteResponse: confineCookies,
      hostRewrite: (client) => {
        const value = active.tunnel.hostHeader(client)
        if (value === undefined || client.target === undefined) return undefined
        const { host = '' } = request.headers
        return new HostRewrite({
          publicOrigin: normalizeOrigin(`${scheme}://${host}`) ?? active.tunnel.address.url,
          target: client.target,
          host: value === 'rewrite' ? undefined : value,
        })
      },
      pickClient: (failed) => active.pickClient(failed),
      onStream: (stream) => active.attach(stream),
      onBytesIn: (bytes) => active.countIn(bytes),
      onBytesOut: (bytes) => active.countOut(bytes),
      onResponse: (status) => active.onResponse(status),
      onProblem: (problem) => active.onProblem(problem),
      fail(cause) {
        active.onResponse(causes[cause].status)
        active.onProblem({ problem: cause })
        send({ cause })
      },
    }
  }

  return {
    onRequest(host, request, response) {
      const send: SendError = (error) => {
        instruments.countRejected(causes[error.cause].status)
        sendError(response, error)
      }
      const pending: PendingRequest = {
        isPending: () => !response.headersSent && !response.destroyed,
        sendError: send,
      }
      const visitor: Visitor = {
        address: addresses.ofRequest(request),
        request,
        readable: request,
        writable: request.socket,
        reject(error) {
          // An error response was already sent, because the rest of the request was malformed.
          if (response.headersSent) return reset(request.socket)
          response.shouldKeepAlive = false
          sendError(response, error)
        },
      }
      authorize(host, request, pending, (tunnel) => {
        const active = admitRequest(host, tunnel, visitor, send)
        if (!active) return
        response.once('close', () => {
          active.onResponse(CLIENT_CLOSED_REQUEST)
          active.finish()
        })
        proxyRequest(request, response, proxyOptions(active, request, send))
      })
    },
    onUpgrade(host, request, socket, head) {
      const send: SendError = (error) => {
        instruments.countRejected(causes[error.cause].status)
        sendRawError(socket, request, error)
      }
      const pending: PendingRequest = {
        isPending: () => socket.writable,
        sendError: send,
      }
      const visitor: Visitor = {
        address: addresses.ofRequest(request),
        request,
        readable: socket,
        writable: socket,
        reject: (error) => sendRawError(socket, request, error),
      }
      authorize(host, request, pending, (tunnel) => {
        const active = admitRequest(host, tunnel, visitor, send)
        if (!active) return
        socket.once('close', () => {
          active.onResponse(CLIENT_CLOSED_REQUEST)
          active.finish()
        })
        proxyUpgrade(request, socket, head, proxyOptions(active, request, send))
      })
    },
    onTcpConnection(host, socket) {
      const address = addresses.ofPeer(socket)
      const tunnel = registry.atHost(host)
      const isAllowed = tunnel?.access.allowsConnection(address)
      if (isAllowed === false) return void socket.destroy()
      if (tunnel && options.quotaReachedUntil(tunnel.workspace) !== undefined) return void socket.destroy()
      const close = () => void socket.destroy()
      const visitor = { address, request: undefined, readable: socket, writable: socket, reject: close }
      const active = admit(host, tunnel, visitor, close)
      const client = active?.pickClient()
      if (!active || !client) return
      socket.on('error', () => {})
      socket.once('close', () => active.finish())
      const stream = openStream(client)
      if (!stream) return void socket.destroy()
      active.attach(stream)
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
function openStream(client: UpstreamClient) {
  try {
    return client.openStream()
  } catch {
    return undefined
  }
}
