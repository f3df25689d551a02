// The HTTP server below Fastify: limits what a connection may do, and responds in the usual form to bytes
// that never become a request.
import type * as Http from 'node:http'
import type { Socket } from 'node:net'
import { Fault, invalid } from '../../domain/fault.ts'
import { Connection, type RequestHandlers } from './connection.ts'

// Importing it statically would also load Node's client for `fetch`: 25 ms of a start.
const http = process.getBuiltinModule('node:http')

const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000
const TIMEOUT_CHECK_MS = 1_000
/** Longer than the idle timeout of common proxies, so that it is they who close first. */
const KEEP_ALIVE_MS = 75_000
/** A client that neither sends nor reads for that long in the middle of a request or response is gone. */
const IDLE_TIMEOUT_MS = 30_000

export function createGuardedServer(handlers: RequestHandlers): Http.Server {
  const { log } = handlers
  const server = http.createServer({
    // A request without a body is not made into a stream first.
    optimizeEmptyRequests: true,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Refused by Fastify, with a body that says so.
    requireHostHeader: false,
    // Two Authorization headers become one that is no key, instead of the first one winning.
    joinDuplicateHeaders: true,
  })
  server.timeout = IDLE_TIMEOUT_MS

  const connections = new WeakMap<Socket, Connection>()
  const connectionOf = (socket: Socket) => connections.get(socket) as Connection
  const onRequest: Http.RequestListener = (request, response) =>
    connectionOf(request.socket).onRequest(request, response)

  server.on('connection', (socket) => connections.set(socket, new Connection(socket, handlers)))
  server.on('request', onRequest)
  // An expectation that Node does not know is ignored, instead of being answered in Node's own way. So is a
  // request to upgrade, because nothing listens for it.
  server.on('checkExpectation', onRequest)
  server.on('connect', (request, stream) => {
    // Where a body follows, it is not the socket, and fails by itself.
    stream.on('error', () => {})
    connectionOf(request.socket).refuse(new Fault('not_found'))
  })
  server.on('clientError', (error: Error & { code?: string }, stream) => {
    const socket = stream as Socket
    // A client that has sent nothing gets no response: it could pass for that to a request just arriving.
    if (error.code === 'ECONNRESET' || !socket.writable || socket.bytesRead === 0) {
      socket.destroy()
      return
    }
    log.info({ code: error.code, from: socket.remoteAddress }, 'malformed HTTP request')
    connectionOf(socket).refuse(explain(error.code))
  })
  return server
}

function explain(code: string | undefined): Fault {
  if (code === 'HPE_HEADER_OVERFLOW') return invalid('/headers', 'must not be larger than 16 KiB')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return invalid('', 'the request did not arrive whole in time')
  return invalid('', 'this is not a well-formed HTTP request')
}
