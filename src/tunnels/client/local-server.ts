// Proxies requests that arrive through the tunnel to the local server.
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { mayUpgrade, type ProxyOptions, proxyRequest, proxyUpgrade } from '../proxy.ts'
import { sendError, sendRawError } from '../responses.ts'

/** nginx's status for a client that closed the connection before the response. */
const CLIENT_CLOSED_REQUEST = 499
/** Twice the limit of the edge, which adds headers to requests. */
const HEADER_BYTES_MAX = 32 * 1024
const MALFORMED = 'Bad gateway: the tunnel client could not parse the request.'

export interface ProxiedRequest {
  readonly method: string
  readonly path: string
  /** 101 for upgrades such as WebSockets. */
  readonly status: number
  readonly ms: number
}

export interface LocalServerOptions {
  /** Address of the local server. */
  readonly host: string
  readonly port: number
  /** Called once for each request, when its response begins or it fails. */
  onRequest(request: ProxiedRequest): void
}

/** A Node HTTP server that does not listen: it is given the connections of the tunnel. */
export function createLocalProxy({ host, port, onRequest }: LocalServerOptions) {
  const requestListeners = new WeakMap<object, () => void>()
  /** Sockets with a request whose response is not complete. */
  const busy = new WeakSet<object>()
  const server = createServer({
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: 0,
    shouldUpgradeCallback: mayUpgrade,
    maxHeaderSize: HEADER_BYTES_MAX,
  })
  // The edge limits the number of headers.
  server.maxHeadersCount = 0
  const errors = {
    502: `Bad gateway: the local server at ${host}:${port} did not respond.`,
    504: `Gateway timeout: the local server at ${host}:${port} did not respond in time.`,
  }

  function proxyOptions(
    request: IncomingMessage,
    sendError: (status: number, message: string) => void,
  ): Required<Pick<ProxyOptions, 'onResponse'>> & ProxyOptions {
    const startedAt = performance.now()
    let isReported = false
    const onResponse = (status: number) => {
      const { method = '', url = '' } = request
      if (!isReported) onRequest({ method, path: url, status, ms: performance.now() - startedAt })
      isReported = true
    }
    requestListeners.get(request.socket)?.()
    return {
      upstream: { agent: false, host, port },
      onResponse,
      fail(status) {
        onResponse(status)
        sendError(status, errors[status])
      },
    }
  }

  server.on('request', (request, response) => {
    const options = proxyOptions(request, (status, message) => sendError(response, status, message))
    busy.add(request.socket)
    response.once('close', () => {
      busy.delete(request.socket)
      options.onResponse(CLIENT_CLOSED_REQUEST)
    })
    proxyRequest(request, response, options)
  })
  server.on('upgrade', (request, socket, head) => {
    const options = proxyOptions(request, (status, message) => sendRawError(socket, status, message))
    proxyUpgrade(request, socket, head, options)
  })
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    // A parse error means that a request has arrived, so the connection is no longer spare.
    const isParseError = error.code?.startsWith('HPE_') === true
    if (isParseError) requestListeners.get(socket)?.()
    if (isParseError && socket.writable && !busy.has(socket)) sendRawError(socket, 502, MALFORMED)
    else socket.destroy()
  })
  return {
    serve(socket: Socket, onRequestStart: () => void): void {
      requestListeners.set(socket, onRequestStart)
      server.emit('connection', socket)
    },
  }
}
