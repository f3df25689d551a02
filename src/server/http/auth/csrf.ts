// Protection against cross-site request forgery: browsers send cookies with requests that other sites cause,
// so writes are accepted from the dashboard's own origin only.
import type { FastifyRequest } from 'fastify'
import { Fault, invalid } from '../../domain/fault.ts'

/** Compares with the origin of the configured base URL, or of the request's Host header. */
export function requireSameOrigin(request: FastifyRequest, baseUrl: string | undefined): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const type = request.headers['content-type']
  // A form of another site can send other types without a preflight request.
  if (type !== undefined && !/^application\/json\b/i.test(type.trim()))
    throw invalid('/headers/content-type', 'must be application/json')
  // Every browser sends Origin with a write.
  if (request.headers.origin === undefined) throw crossSite(requestOrigin(request, baseUrl))
  rejectCrossSite(request, baseUrl)
}

/** For requests without cookies. Clients that are not browsers send neither header, and are accepted. */
export function rejectCrossSite(request: FastifyRequest, baseUrl: string | undefined): void {
  const serverOrigin = requestOrigin(request, baseUrl)
  const { origin, 'sec-fetch-site': site } = request.headers
  const isSameOrigin = origin === undefined || origin === serverOrigin
  if (!isSameOrigin || (site !== undefined && site !== 'same-origin')) throw crossSite(serverOrigin)
}

const crossSite = (serverOrigin: string | undefined) =>
  new Fault('forbidden', {
    message:
      `Cross-site request rejected. Open the dashboard at ${serverOrigin ?? 'the address of this server'}. ` +
      'If its address is different, the operator must set ADIT_BASE_URL.',
  })

/**
 * The origin of this server, as the client sees it. Undefined without a Host header, which all browsers send.
 */
export function requestOrigin(
  { headers: { host }, clientScheme }: FastifyRequest,
  baseUrl: string | undefined,
): string | undefined {
  if (!host) return undefined
  return URL.parse(baseUrl ?? `${clientScheme}://${host}`)?.origin
}

/**
 * For the redirect back from the identity provider, a GET from another site that signs in. A cookie binds its
 * one-time state to the browser; this check rejects requests that are not a top-level navigation.
 */
export function requireNavigation({ method, headers }: FastifyRequest): void {
  if (method === 'GET' && (headers['sec-fetch-dest'] ?? 'document') === 'document') return
  throw new Fault('forbidden', { message: 'Open this page directly in the browser and sign in again.' })
}
