// Faults → answers. The public body is built here and only here; the cause goes to the log.
import type { FastifyError, FastifyReply, FastifyRequest } from 'fastify'
import { faults } from '../../contract/faults.ts'
import { Fault, faultOf, invalid } from '../../domain/fault.ts'

export function bodyOf(fault: Fault): object {
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

export function sendFault(error: unknown, request: FastifyRequest, reply: FastifyReply): FastifyReply {
  const fault = faultFor(error, request)
  if (fault.code === 'unauthorized' && asksForBearer(request)) reply.header('www-authenticate', 'Bearer')
  if (fault.retryAfterS !== undefined) reply.header('retry-after', fault.retryAfterS)
  return reply
    .code(faults[fault.code].status)
    .header('content-type', 'application/json; charset=utf-8')
    .header('cache-control', 'no-store')
    .serializer(JSON.stringify)
    .send(bodyOf(fault))
}

/** What to tell of an error; its cause is logged. */
export function faultFor(error: unknown, request: FastifyRequest): Fault {
  const fault = translate(error)
  if (fault.code === 'internal') request.log.error({ err: fault.cause }, 'request failed')
  if (fault.code === 'unavailable' && fault.cause && !fault.isLogged)
    request.log.warn({ reason: (fault.cause as Error).message }, 'database unavailable')
  return fault
}

/** A person signs in; everybody else sends a header. */
function asksForBearer({ routeOptions }: FastifyRequest): boolean {
  const access = routeOptions.config.operation?.access
  return access === undefined || access === 'key' || access === 'edge'
}

/** What the framework refuses by itself (too large, a bad path, …) is a request that failed validation. */
function translate(error: unknown): Fault {
  if (error instanceof Fault) return error
  const { code, statusCode = 500 } = error as Partial<FastifyError>
  if (statusCode < 400 || statusCode >= 500) return faultOf(error)
  return refusals[code ?? ''] ?? invalid('', 'this request cannot be met as it stands')
}

const refusals: Record<string, Fault> = {
  FST_ERR_CTP_BODY_TOO_LARGE: invalid('/body', 'is larger than this operation takes'),
  FST_ERR_CTP_INVALID_CONTENT_LENGTH: invalid('/body', 'has not the length that Content-Length says'),
  FST_ERR_CTP_INVALID_MEDIA_TYPE: invalid('/headers/content-type', 'must be application/json'),
  // Nothing has an identifier that long.
  FST_ERR_MAX_PARAM_LENGTH: new Fault('not_found'),
  FST_ERR_BAD_URL: invalid('/path', 'is not a well-formed URL path'),
}
