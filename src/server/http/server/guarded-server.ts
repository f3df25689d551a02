// The HTTP server below Fastify: limits what a connection may do, and responds in the usual form to bytes
// that never become a request.
import type * as Http from 'node:http'
import { attachConnectionGuard } from '../../../lib/http/connection-guard.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import { Fault, invalid } from '../../domain/fault.ts'
import type { ClientReader } from './client-address.ts'
import { ApiConnection, type RequestHandlers } from './connection.ts'

// A static import would also load Node's `fetch` client: 25 ms of startup.
const http = process.getBuiltinModule('node:http')

const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000
const TIMEOUT_CHECK_MS = 1_000
/** Longer than the idle timeout of common proxies, so that they close first. */
const KEEP_ALIVE_MS = 75_000
/** A client that neither sends nor reads for this long, during a request or response, is disconnected. */
const IDLE_TIMEOUT_MS = 30_000

const rejections = {
  'headers too large': invalid('/headers', 'must not be larger than 16 KiB'),
  timeout: invalid('', 'the request did not arrive whole in time'),
  malformed: invalid('', 'this is not a well-formed HTTP request'),
  connect: new Fault('not_found'),
}

interface GuardOptions extends RequestHandlers {
  client: ClientReader
}

export function createGuardedServer({ client, ...handlers }: GuardOptions): Http.Server {
  const { log } = handlers
  const server: Http.Server = http.createServer({
    // Skips the stream of a request without a body.
    optimizeEmptyRequests: true,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // A missing Host header is rejected in create.ts, with the usual error body.
    requireHostHeader: false,
    // Two Authorization headers become one that is not a valid key, instead of the first one winning.
    joinDuplicateHeaders: true,
    shouldUpgradeCallback: (request) => guard.ignoreUpgrade(request),
  })
  server.timeout = IDLE_TIMEOUT_MS
  const guard = attachConnectionGuard(server, {
    peer: client.peer,
    connect(socket, release) {
      socket.once('close', release)
      return new ApiConnection(socket, handlers)
    },
    rejectFraming: (rule): Fault => invalid('/headers/transfer-encoding', rule),
    rejections,
    onClientError: (code, { remoteAddress = '' }) =>
      log.info({ code, from: normalizeAddress(remoteAddress) }, 'malformed HTTP request'),
    onLimited: (reached) =>
      log.warn(
        reached,
        reached.limit === 'client'
          ? 'connections of a client rejected; if this is your proxy, add it to ADIT_TRUSTED_PROXIES'
          : 'connections rejected; to accept more, raise the limit of open files (ulimit -n)',
      ),
  })
  return server
}
