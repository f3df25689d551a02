// Faults → error responses. The public body is built here and only here; the cause goes to the log.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { faults } from '../../../contract/faults.ts'
import { Fault, invalid, toFault } from '../../domain/fault.ts'

export function errorBody(fault: Fault): object {
  switch (fault.code) {
    case 'invalid_request':
      return { error: fault.code, details: fault.details }
    case 'not_found':
    case 'internal':
      return { error: fault.code }
    case 'unauthorized':
    case 'forbidden':
    case 'conflict':
    case 'idempotency_mismatch':
    case 'rate_limited':
    case 'unavailable':
      return { error: fault.code, message: fault.message }
  }
}

/** RFC 6749, section 5.2: the description has printable ASCII characters without quotes and backslashes. */
const oauthBody = ({ code, message }: Fault) => ({
  error: code,
  error_description: (message === code ? faults[code].description : message)
    .replace(/["’`]/g, "'")
    .replace(/[^\x20-\x5b\x5d-\x7e]/g, '?'),
})

export function sendFault(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const fault = faultFor(error, request)
  if (fault.code === 'unauthorized' && acceptsBearer(request))
    reply.header('www-authenticate', request.routeOptions.config.challenge?.() ?? 'Bearer')
  if (fault.retryAfterS !== undefined) reply.header('retry-after', fault.retryAfterS)
  // The header is already set if the first chunk of a file failed.
  reply.removeHeader('content-disposition')
  return reply
    .code(faults[fault.code].status)
    .header('content-type', 'application/json; charset=utf-8')
    .header('cache-control', 'no-store')
    .serializer(JSON.stringify)
    .send(request.routeOptions.config.operation?.oauth ? oauthBody(fault) : errorBody(fault))
}

/** Returns the public fault of an error, and logs the cause. */
export function faultFor(error: unknown, request: FastifyRequest): Fault {
  const fault = translate(error)
  if (fault.code === 'internal') request.log.error({ err: fault.cause }, 'request failed')
  if (fault.code === 'unavailable' && fault.cause && !fault.isLogged)
    request.log.warn({ reason: (fault.cause as Error).message }, 'database unavailable')
  return fault
}

/** Users of the dashboard sign in instead. */
function acceptsBearer({ routeOptions }: FastifyRequest): boolean {
  const access = routeOptions.config.operation?.access
  return access === undefined || access === 'key' || access === 'edge'
}

/** Requests that Fastify rejects itself (body too large, malformed path, …) failed validation. */
function translate(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { code, statusCode = 500 } = error as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500) return toFault(error)
  return frameworkFaults[code ?? ''] ?? invalid('', 'is not a valid request')
}

const frameworkFaults: Record<string, Fault> = {
  FST_ERR_CTP_BODY_TOO_LARGE: invalid('/body', 'is larger than this operation accepts'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: invalid('/body', 'does not have the length of Content-Length'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: invalid('/headers/content-type', 'must be application/json'),
  // No identifier is that long.
  FST_ERR_MAX_PARAM_LENGTH: new Fault('not_found'),
  // Malformed percent-encoding is not part of any route.
  FST_ERR_BAD_URL: new Fault('not_found'),
}
