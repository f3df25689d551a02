// OAuth metadata for MCP clients: of the protected resource (RFC 9728), and of the server that issues API
// keys for it by the device authorization grant (RFC 8414).
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { DEVICE_GRANT } from '../../../contract/device.ts'

const RESOURCE_PATH = '/.well-known/oauth-protected-resource'
const SERVER_PATH = '/.well-known/oauth-authorization-server'
const CACHE_S = 300

/** WWW-Authenticate of a 401 for this path, which names its metadata. */
export const challengeFor = (address: string, path: string): string =>
  `Bearer resource_metadata="${address}${RESOURCE_PATH}${path}"`

/**
 * `paths` are the protected resources. The metadata of the whole server is at the URL without a path, which
 * clients try if they do not know the URL with the path.
 */
export function registerOAuthMetadata(
  server: FastifyInstance,
  { publicUrl, paths }: { publicUrl: () => string; paths: readonly string[] },
): void {
  const serve = (url: string, describe: () => object) =>
    server.get(url, (_request, reply) =>
      reply
        .header('access-control-allow-origin', '*')
        .header('cache-control', `public, max-age=${CACHE_S}`)
        .send(describe()),
    )
  for (const path of ['', ...paths])
    serve(RESOURCE_PATH + path, () => ({
      resource: publicUrl() + path,
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
