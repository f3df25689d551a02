// Protects an HTTP server at the level of connections: limits their number, queues pipelined requests, and
// rejects bytes that never become a request.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { ConnectionLimit, type ConnectionLimitOptions } from '../net/connection-limit.ts'
import { type ClientError, classifyClientError } from './client-error.ts'
import type { HttpConnection } from './connection.ts'
import { framingRule } from './request-framing.ts'

interface ConnectionGuardOptions<Rejection, C extends HttpConnection<Rejection>> {
  /** The client's address, for its limit of connections; undefined if unknown. */
  peer(socket: Socket): string | undefined
  readonly onLimited: ConnectionLimitOptions['onReached']
  /** `release` frees the client's slot. Call it once. */
  connect(socket: Socket, release: () => void): C
  /** Rejects a request before it is queued. */
  check?(request: IncomingMessage): Rejection | undefined
  /** Whether the handler of a request sends 100 Continue. Otherwise, it is sent at once. */
  sendsContinue?(request: IncomingMessage): boolean
  /** The rejection of a Transfer-Encoding that breaks the rule. */
  rejectFraming(rule: string): Rejection
  readonly rejections: Record<ClientError | 'connect', Rejection>
  onClientError?(code: string | undefined, socket: Socket): void
}

interface ConnectionGuard<C> {
  readonly connections: ReadonlyMap<Duplex, C>
  /**
   * Counts a connection to another port, and returns a function that ends the counting. Undefined if a limit
   * was reached; then the connection is closed.
   */
  admit(socket: Socket): (() => void) | undefined
  readonly limit: Pick<ConnectionLimit, 'isCrowded'>
  /**
   * For Node's `shouldUpgradeCallback`. Treats a request for an upgrade as any other and closes the
   * connection after it, because Node discards what it has read beyond it.
   */
  ignoreUpgrade(request: IncomingMessage): false
}

export function attachConnectionGuard<Rejection, C extends HttpConnection<Rejection>>(
  server: Server,
  options: ConnectionGuardOptions<Rejection, C>,
): ConnectionGuard<C> {
  const { rejections } = options
  const connections = new Map<Duplex, C>()
  const limit = new ConnectionLimit({
    closeIdleConnections: () => server.closeIdleConnections(),
    onReached: options.onLimited,
  })
  const admit = (socket: Socket) => limit.admit(socket, options.peer(socket))

  server.on('connection', (socket: Socket) => {
    const release = admit(socket)
    if (!release) return
    connections.set(socket, options.connect(socket, release))
    socket.once('close', () => connections.delete(socket))
  })
  const enqueue = (request: IncomingMessage, response: ServerResponse) => {
    const connection = connections.get(request.socket)
    const rule = framingRule(request)
    const rejection = rule === undefined ? options.check?.(request) : options.rejectFraming(rule)
    if (rejection !== undefined) connection?.reject(rejection)
    else connection?.enqueue({ request, response })
  }
  server.on('request', enqueue)
  server.on('checkContinue', (request, response) => {
    if (!options.sendsContinue?.(request)) response.writeContinue()
    enqueue(request, response)
  })
  // Unknown expectations are ignored.
  server.on('checkExpectation', enqueue)
  server.on('connect', (request, stream) => {
    // If a body follows, the stream is not the socket, and emits its own errors.
    stream.on('error', () => {})
    connections.get(request.socket)?.reject(rejections.connect)
  })
  server.on('clientError', ({ code }: Error & { code?: string }, socket) => {
    const clientError = classifyClientError(code, socket)
    if (!clientError) {
      socket.destroy()
      return
    }
    options.onClientError?.(code, socket as Socket)
    connections.get(socket)?.reject(rejections[clientError])
  })
  return {
    connections,
    admit,
    limit,
    ignoreUpgrade(request) {
      connections.get(request.socket)?.closeAfter(request)
      return false
    },
  }
}
