// Writes with a cookie come from our own page, or are refused: a browser sends cookies along with whatever another site
// makes it send.
import type { FastifyRequest } from 'fastify'
import { Fault, invalid } from '../domain/fault.ts'

/** `origin`: where people reach the server, if that is known; else the host that the request names. */
export function requireSameOrigin(request: FastifyRequest, origin: string | undefined): void {
  if (request.method === 'GET' || request.method === 'HEAD') return
  const type = request.headers['content-type']
  // What a form of another site can send without asking first.
  if (type !== undefined && !/^application\/json\b/i.test(type.trim()))
    throw invalid('/headers/content-type', 'must be application/json')
  if (isSame(request, origin)) return
  throw new Fault('forbidden', { message: 'This is done from the dashboard itself, not from another site.' })
}

function isSame({ headers }: FastifyRequest, origin: string | undefined): boolean {
  const site = headers['sec-fetch-site']
  if (site !== undefined && site !== 'same-origin') return false
  // Every browser says where a write comes from; whatever does not is no browser.
  if (headers.origin === undefined) return false
  return origin !== undefined && headers.origin === origin
    ? true
    : URL.parse(headers.origin)?.host === headers.host
}
