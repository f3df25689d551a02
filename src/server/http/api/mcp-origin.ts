// Which requests /mcp accepts by their Host and Origin. The protocol requires these checks: without them, a
// web page could reach a server on a loopback address or in a private network, by a name of its own that
// resolves to that address.
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isLoopbackHost } from '../../../lib/net/hostname.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import { Fault } from '../../domain/fault.ts'
import { requestOrigin } from '../auth/csrf.ts'

export interface McpOriginOptions {
  baseUrl: string | undefined
  /** Origins besides the server's own, whose pages may send requests. */
  origins: readonly string[]
}

const EXPOSED_HEADERS = 'Retry-After, WWW-Authenticate, X-Request-Id'

/** Throws if the request is not for this server, or comes from a page of another origin. */
export function checkOrigin(
  request: FastifyRequest,
  reply: FastifyReply,
  { baseUrl, origins }: McpOriginOptions,
): void {
  const serverOrigin = findServerOrigin(request, baseUrl)
  if (serverOrigin === undefined) throw foreignHost()
  const { origin } = request.headers
  reply.header('vary', 'Origin')
  // Only browsers send it.
  if (origin === undefined) return
  if (origin !== serverOrigin && !origins.includes(origin)) throw foreignOrigin()
  reply.header('access-control-allow-origin', origin).header('access-control-expose-headers', EXPOSED_HEADERS)
}

/**
 * Undefined unless the Host header has the host of the base URL, or the address that the client has connected
 * to. Other names cannot be told from those that an attacker has pointed to this server.
 */
function findServerOrigin(request: FastifyRequest, baseUrl: string | undefined): string | undefined {
  const { host = '' } = request.headers
  const base = baseUrl === undefined ? undefined : new URL(baseUrl)
  const url = /[/?#@\\]/.test(host) ? null : URL.parse(`${base?.protocol ?? 'http:'}//${host}`)
  if (!url) return undefined
  if (url.host === base?.host) return base.origin
  const local = normalizeAddress(request.raw.socket.localAddress ?? '')
  if (local === undefined) return undefined
  const isLocal =
    normalizeAddress(url.hostname) === local || (isLoopbackHost(local) && isLoopbackHost(url.hostname))
  return isLocal ? requestOrigin(request, undefined) : undefined
}

const foreignHost = () =>
  new Fault('forbidden', {
    message:
      'The Host header is not the address of this server. Connect to the address in ADIT_BASE_URL; the ' +
      'operator must set it if clients use a host name.',
  })

const foreignOrigin = () =>
  new Fault('forbidden', {
    message: 'Pages of this origin may not use /mcp. The operator can allow it with ADIT_MCP_ORIGINS.',
  })

export const PREFLIGHT_HEADERS = {
  'access-control-allow-methods': 'POST, OPTIONS',
  'access-control-allow-headers':
    'Authorization, Content-Type, Mcp-Method, Mcp-Name, Mcp-Protocol-Version, traceparent',
  'access-control-max-age': '86400',
}
