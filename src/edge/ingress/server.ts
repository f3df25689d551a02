// Requests and connections from the internet: finds the tunnel by host name or port, proxies to it, and
// counts its usage.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import type { EdgeInstruments } from '../../lib/metrics/edge-instruments.ts'
import { normalizeOrigin } from '../../lib/net/host-header.ts'
import { reset } from '../../tunnel-protocol/connect-streams.ts'
import { type FailureCause, isForwardProblem } from '../../tunnel-protocol/problems.ts'
import { causes } from '../error-responses/causes.ts'
import { createTcpIngress, type TcpIngressOptions } from '../tcp/ingress.ts'
import { CUT_OFF, type Traffic } from '../traffic.ts'
import { ActiveRequest, type ActiveRequestOptions, type Visitor } from './active-request.ts'
import {
  type AuthorizationOptions,
  createAuthorization,
  type OpenTunnel,
  type PendingRequest,
  type SendError,
} from './authorization.ts'
import { confineCookies } from './headers/cookies.ts'
import { HostRewrite } from './headers/host-rewrite.ts'
import { type ProxyOptions, proxyRequest } from './proxy.ts'
import { proxyUpgrade } from './proxy-upgrade.ts'
import { sendError, sendRawError } from './responses.ts'

export interface Ingress {
  onRequest(host: string, request: IncomingMessage, response: ServerResponse): void
  onUpgrade(host: string, request: IncomingMessage, socket: Duplex, head: Buffer): void
  /** A connection to the port of a TCP tunnel. */
  onTcpConnection(host: string, socket: Socket): void
}

interface IngressOptions extends AuthorizationOptions, Pick<TcpIngressOptions, 'sharesPorts'> {
  readonly scheme: 'http' | 'https'
  readonly instruments: EdgeInstruments
  readonly traffic: Traffic
}

/** One of the attempts to get a response to a request. */
interface Attempt {
  /** How many attempts have failed before it. */
  readonly failures: number
  /** The tunnel at which the previous one has failed. */
  readonly failed?: OpenTunnel
}

const FIRST_ATTEMPT: Attempt = { failures: 0 }
/** A request is retried at most twice: its rules may change, and then its edge may be lost. */
const ATTEMPTS_MAX = 3
/** The client or its edge may be lost. */
const LOST_CAUSES: ReadonlySet<FailureCause> = new Set(['no_response', 'closed'])

/** nginx's status for a client that closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499

export function createIngress(options: IngressOptions): Ingress {
  const { registry, remote, addresses, scheme, instruments, traffic } = options
  const authorization = createAuthorization(options)
  const { authorize } = authorization
  const onTcpConnection = createTcpIngress({ ...options, ...authorization, admit })

  /** Acquires a slot of the tunnel, or sends an error. */
  function admit(
    host: string,
    tunnel: OpenTunnel | undefined,
    visitor: Visitor,
    send: SendError,
    isRetry = false,
  ): ActiveRequest | undefined {
    const { address } = visitor
    const releaseAddress = tunnel?.perAddress.acquire(address)
    if (!tunnel?.isAvailable)
      send({ cause: 'tunnel_not_found', detail: `The host of the request is ${host}.` })
    else if (!traffic.mayCarry()) send(CUT_OFF)
    else if (!releaseAddress) send({ cause: 'too_many_requests' })
    else if (!tunnel.requests.makeRoom(address)) send({ cause: 'tunnel_busy' })
    else if (!tunnel.load.requests.makeRoom(address)) send({ cause: 'workspace_busy' })
    else {
      const active = new ActiveRequest({
        tunnel,
        visitor,
        instruments,
        traffic,
        isRetry,
        hasOther,
        onFinished: releaseAddress,
      })
      tunnel.progress.start()
      return active
    }
    releaseAddress?.()
    return undefined
  }

  function admitRequest(
    host: string,
    tunnel: OpenTunnel | undefined,
    visitor: Visitor,
    send: SendError,
    isRetry = false,
  ): ActiveRequest | undefined {
    // A TCP tunnel has a name too, but takes no HTTP requests.
    if (tunnel?.type !== 'tcp') return admit(host, tunnel, visitor, send, isRetry)
    send({ cause: 'tcp_tunnel' })
    return undefined
  }

  /** Whether another client, here or at another edge, could serve a request of the tunnel. */
  const hasOther: ActiveRequestOptions['hasOther'] = (tunnel, client) =>
    tunnel.hasOther(client) || hasOtherEdge(tunnel)

  function hasOtherEdge(tunnel: OpenTunnel): boolean {
    const local = registry.atHost(tunnel.address.host)
    if (local && local !== tunnel && local.isAvailable) return true
    return remote?.hasOther(tunnel.address.host, tunnel) === true
  }

  /** Whether a request without a response may be retried, at another edge or by changed rules. */
  function mayRetry({ tunnel, areRulesChanged }: ActiveRequest, cause: FailureCause): boolean {
    if (cause === 'tunnel_moved') return remote !== undefined
    if (!LOST_CAUSES.has(cause)) return false
    return areRulesChanged || hasOtherEdge(tunnel)
  }

  /**
   * Whether a request may not go to another client of its tunnel: changed rules may not allow it, or another
   * edge has a client that responds.
   */
  const mustRetry = ({ tunnel, areRulesChanged }: ActiveRequest) =>
    areRulesChanged || (tunnel.isSilent && hasOtherEdge(tunnel))

  function proxyOptions(
    active: ActiveRequest,
    request: IncomingMessage,
    send: SendError,
    attempt?: Attempt & { begin(next: Attempt): void },
  ): ProxyOptions {
    const isForwarded = registry.atHost(active.tunnel.address.host) !== active.tunnel
    if (isForwarded) instruments.forwarded += 1
    return {
      isRetry: attempt?.failed !== undefined,
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
      pickClient: (failed) => (failed && mustRetry(active) ? undefined : active.pickClient(failed)),
      onStream(stream, mayRetry) {
        active.attach(stream)
        if (mayRetry) active.retryIfSilent()
      },
      onBytesIn: (bytes) => active.countIn(bytes),
      onBytesOut: (bytes) => active.countOut(bytes),
      onResponse: (status) => active.onResponse(status),
      onProblem: (problem) => active.onProblem(problem),
      fail(cause, isRetryable) {
        const { tunnel } = active
        if (cause === 'tunnel_moved') remote?.onMoved(tunnel)
        if (isForwarded) instruments.countForwardFailure(cause)
        const failures = (attempt?.failures ?? 0) + 1
        if (attempt && isRetryable && failures < ATTEMPTS_MAX && mayRetry(active, cause)) {
          active.finish()
          attempt.begin({ failures, failed: tunnel })
          return
        }
        active.onResponse(causes[cause].status)
        if (!isForwardProblem(cause)) active.onProblem({ problem: cause })
        send({ cause })
      },
    }
  }

  return {
    onRequest(host, request, response) {
      const send: SendError = (error) => {
        instruments.countRejected(causes[error.cause].status)
        if (error.cause === 'tunnel_unreachable') instruments.countForwardFailure(error.cause)
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
      const begin = (attempt: Attempt) => {
        const proceed = (tunnel: OpenTunnel | undefined) => {
          const active = admitRequest(host, tunnel, visitor, send, attempt.failures > 0)
          if (!active) return
          response.once('close', () => {
            active.onResponse(CLIENT_CLOSED_REQUEST)
            active.finish()
          })
          proxyRequest(request, response, proxyOptions(active, request, send, { ...attempt, begin }))
        }
        authorize(host, request, pending, proceed, attempt.failed)
      }
      begin(FIRST_ATTEMPT)
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
    onTcpConnection,
  }
}
