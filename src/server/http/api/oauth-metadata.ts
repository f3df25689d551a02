// OAuth metadata for MCP clients: of the protected resource (RFC 9728), and of the server that issues keys
// for it (RFC 8414).
import type { FastifyInstance } from 'fastify'
import { apis } from '../../../contract/apis.ts'
import { DEVICE_GRANT } from '../../../contract/device.ts'
import { CODE_GRANT } from '../../../contract/oauth.ts'

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
    authorization_endpoint: `${publicUrl()}/authorize`,
    token_endpoint: `${publicUrl()}${apis.oauth.prefix}/token`,
    registration_endpoint: `${publicUrl()}${apis.oauth.prefix}/register`,
    device_authorization_endpoint: `${publicUrl()}${apis.device.prefix}/authorize`,
    client_id_metadata_document_supported: true,
    authorization_response_iss_parameter_supported: true,
    code_challenge_methods_supported: ['S256'],
    token_endpoint_auth_methods_supported: ['none'],
    grant_types_supported: [CODE_GRANT, DEVICE_GRANT],
    response_types_supported: ['code'],
    response_modes_supported: ['query'],
  }))
}
