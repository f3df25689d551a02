// OAuth metadata for MCP clients: of the protected resource (RFC 9728), and of the server that issues API
// keys for it by the device authorization grant (RFC 8414).
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { DEVICE_GRANT } from '../../../contract/device.ts'

const RESOURCE_PATH = '/.well-known/oauth-protected-resource'
const SERVER_PATH = '/.well-known/oauth-authorization-server'
const CACHE_S = 300

/** The WWW-Authenticate header of a 401 for this path: the URL of its metadata. */
export const challengeFor = (publicUrl: string, path: string): string =>
  `Bearer resource_metadata="${publicUrl}${RESOURCE_PATH}${path}"`

/**
 * `path` is the protected resource. Clients that do not know the URL with the path try the one without it,
 * which describes the whole server.
 */
export function registerOAuthMetadata(
  server: FastifyInstance,
  { publicUrl, path }: { publicUrl: () => string; path: string },
): void {
  const serve = (url: string, describe: () => object) =>
    server.get(url, (_request, reply) =>
      reply
        .header('access-control-allow-origin', '*')
        .header('cache-control', `public, max-age=${CACHE_S}`)
        .send(describe()),
    )
  for (const resource of ['', path])
    serve(RESOURCE_PATH + resource, () => ({
      resource: publicUrl() + resource,
      resource_name: 'Adit',
      authorization_servers: [publicUrl()],
      bearer_methods_supported: ['header'],
    }))
  serve(SERVER_PATH, () => ({
    issuer: publicUrl(),
    device_authorization_endpoint: `${publicUrl()}${apis.device.prefix}/authorize`,
    token_endpoint: `${publicUrl()}${apis.device.prefix}/token`,
    token_endpoint_auth_methods_supported: ['none'],
    grant_types_supported: [DEVICE_GRANT],
    response_types_supported: [],
  }))
}
