// Cross-site request forgery: a browser sends cookies with whatever another site makes it send, so writes are accepted
// from the dashboard's own origin only.
import type { FastifyRequest } from 'fastify'
import { Fault, invalid } from '../../domain/fault.ts'

/** `baseUrl`: the configured one. Without it, the origin is the one that the request was sent to. */
export function requireSameOrigin(request: FastifyRequest, baseUrl: string | undefined): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const type = request.headers['content-type']
  // Other types can be sent by a form of another site, without a preflight request.
  if (type !== undefined && !/^application\/json\b/i.test(type.trim()))
    throw invalid('/headers/content-type', 'must be application/json')
  const own = ownOrigin(request, baseUrl)
  const { origin, 'sec-fetch-site': site } = request.headers
  // Every browser sends Origin with a write.
  const isSame = own !== undefined && origin === own && (site === undefined || site === 'same-origin')
  if (isSame) return
  const where = own ?? 'the address of this server'
  throw new Fault('forbidden', {
    message:
      `Use the dashboard at ${where}: a request from another site is refused. If the dashboard is at another address, ` +
      'the operator sets it as ADIT_BASE_URL.',
  })
}

/** Undefined without a host, whatever is configured: no browser leaves it out. */
function ownOrigin({ headers: { host }, clientScheme }: FastifyRequest, baseUrl: string | undefined) {
  if (!host) return undefined
  const url = URL.parse(baseUrl ?? `${clientScheme}://${host}`)
  return url?.origin
}

/**
 * For a GET that signs in: the way back from the identity provider, which is another site. Its one-time state is bound to
 * the browser by a cookie; here it is made sure that the user navigates, and that no page embeds it.
 */
export function requireNavigation({ method, headers }: FastifyRequest): void {
  if (method === 'GET' && (headers['sec-fetch-dest'] ?? 'document') === 'document') return
  throw new Fault('forbidden', { message: 'Open this address in the browser itself. Sign in again.' })
}
