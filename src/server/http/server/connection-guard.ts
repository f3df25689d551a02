// The HTTP server below Fastify: limits what a connection may do, and responds in the usual form to bytes
// that never become a request.
import type * as Http from 'node:http'
import type { Socket } from 'node:net'
import { type ClientError, classifyClientError } from '../../../lib/net/client-error.ts'
import { ConnectionLimit } from '../../../lib/net/connection-limit.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import { framingRule } from '../../../lib/net/request-framing.ts'
import { Fault, invalid } from '../../domain/fault.ts'
import type { ClientReader } from './client-address.ts'
import { Connection, type RequestHandlers } from './connection.ts'

// Not a static import, which would also load Node's `fetch` client: 25 ms of startup.
const http = process.getBuiltinModule('node:http')

const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000
const TIMEOUT_CHECK_MS = 1_000
/** Longer than the idle timeout of common proxies, so that they close first. */
const KEEP_ALIVE_MS = 75_000
/** A client that neither sends nor reads for that long, during a request or response, is gone. */
const IDLE_TIMEOUT_MS = 30_000

const FAULTS: Record<ClientError, Fault> = {
  'headers too large': invalid('/headers', 'must not be larger than 16 KiB'),
  timeout: invalid('', 'the request did not arrive whole in time'),
  malformed: invalid('', 'this is not a well-formed HTTP request'),
}

export interface GuardOptions extends RequestHandlers {
  client: ClientReader
}

export function createGuardedServer({ client, ...handlers }: GuardOptions): Http.Server {
  const { log } = handlers
  const connections = new WeakMap<Socket, Connection>()
  const connectionOf = (socket: Socket) => connections.get(socket) as Connection
  const server = http.createServer({
    // Skips the stream of a request without a body.
    optimizeEmptyRequests: true,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Fastify rejects these, with the usual body.
    requireHostHeader: false,
    // Two Authorization headers become one that is not a valid key, instead of the first one winning.
    joinDuplicateHeaders: true,
    // Upgrades are ignored, but Node discards what it has read after a request that asks for one.
    shouldUpgradeCallback: (request) => {
      connectionOf(request.socket).closeAfter(request)
      return false
    },
  })
  server.timeout = IDLE_TIMEOUT_MS

  const onRequest: Http.RequestListener = (request, response) => {
    const connection = connectionOf(request.socket)
    const rule = framingRule(request)
    if (rule) connection.reject(invalid('/headers/transfer-encoding', rule))
    else connection.onRequest(request, response)
  }

  const limit = new ConnectionLimit({
    closeIdleConnections: () => server.closeIdleConnections(),
    onReached: (reached) =>
      log.warn(
        reached,
        reached.limit === 'client'
          ? 'connections of a client rejected; if this is your proxy, add it to ADIT_TRUSTED_PROXIES'
          : 'connections rejected; to accept more, raise the limit of open files (ulimit -n)',
      ),
  })
  server.on('connection', (socket) => {
    const release = limit.admit(socket, client.peer(socket))
    if (release) socket.once('close', release)
    connections.set(socket, new Connection(socket, handlers))
  })
  server.on('request', onRequest)
  // Unknown expectations are ignored.
  server.on('checkExpectation', onRequest)
  server.on('connect', (request, stream) => {
    // If a body follows, the stream is not the socket, and emits its own errors.
    stream.on('error', () => {})
    connectionOf(request.socket).reject(new Fault('not_found'))
  })
  server.on('clientError', ({ code }: Error & { code?: string }, stream) => {
    const socket = stream as Socket
    const clientError = classifyClientError(code, socket)
    if (!clientError) {
      socket.destroy()
      return
    }
    log.info({ code, from: normalizeAddress(socket.remoteAddress ?? '') }, 'malformed HTTP request')
    connectionOf(socket).reject(FAULTS[clientError])
  })
  return server
}
