// What comes out of a tunnel, and goes on to a local server.
import { createServer, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import { mayUpgrade, type ProxyOptions, proxyRequest, proxyUpgrade } from '../proxy.ts'
import { sendError, sendRawError } from '../responses.ts'

/** What proxies call it when whoever asked was gone before the answer came. */
const GONE = 499
/** Twice the limit of the edge, which adds headers of its own to requests. */
const HEADER_BYTES_MAX = 32 * 1024
const UNREADABLE = 'The tunnel client could not parse the request.'

export interface Passed {
  readonly method: string
  readonly path: string
  /** 101 for what goes on as a WebSocket, or the like. */
  readonly status: number
  readonly ms: number
}

export interface LocalOptions {
  /** Where the local server is. */
  readonly host: string
  readonly port: number
  onPassed(passed: Passed): void
}

/** What the edge asks is read by Node's own server, which is just given the connections. */
export function createLocalSide({ host, port, onPassed }: LocalOptions) {
  const requestListeners = new WeakMap<object, () => void>()
  /** Sockets with a request whose response is not sent yet. */
  const busy = new WeakSet<object>()
  const server = createServer({
    keepAliveTimeout: 0,
    headersTimeout: 0,
    requestTimeout: 0,
    shouldUpgradeCallback: mayUpgrade,
    maxHeaderSize: HEADER_BYTES_MAX,
  })
  // The edge limits their number.
  server.maxHeadersCount = 0
  const absence = `Nothing answers at ${host}:${port}, where this tunnel leads.`

  /** What hands a request on: it is told of once, when it is answered. */
  function passageFor(
    request: IncomingMessage,
    refuse: ProxyOptions['refuse'],
  ): Required<Pick<ProxyOptions, 'onAnswered'>> & ProxyOptions {
    const began = performance.now()
    let isTold = false
    const onAnswered = (status: number) => {
      const { method = '', url = '' } = request
      if (!isTold) onPassed({ method, path: url, status, ms: performance.now() - began })
      isTold = true
    }
    requestListeners.get(request.socket)?.()
    return {
      to: { agent: false, host, port },
      onAnswered,
      refuse(status) {
        onAnswered(status)
        refuse(status)
      },
    }
  }

  server.on('request', (request, response) => {
    const passage = passageFor(request, (status) => sendError(response, status, absence))
    busy.add(request.socket)
    response.once('close', () => {
      busy.delete(request.socket)
      passage.onAnswered(GONE)
    })
    proxyRequest(request, response, passage)
  })
  server.on('upgrade', (request, socket, early) => {
    const passage = passageFor(request, (status) => sendRawError(socket, status, absence))
    proxyUpgrade(request, socket, early, passage)
  })
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    // A parse error means that a request has arrived, so the connection is not a spare one any more.
    const isParseError = error.code?.startsWith('HPE_') === true
    if (isParseError) requestListeners.get(socket)?.()
    if (isParseError && socket.writable && !busy.has(socket)) sendRawError(socket, 502, UNREADABLE)
    else socket.destroy()
  })
  return {
    serve(socket: Socket, onRequest: () => void): void {
      requestListeners.set(socket, onRequest)
      server.emit('connection', socket)
    },
  }
}
