// Bodies. Whatever the content type says, a body takes this one way, so no spelling of it can skip validation.
import { isUtf8 } from 'node:buffer'
import type { FastifyRequest } from 'fastify'
import { invalid } from '../domain/fault.ts'

/** An operation without a body ignores one; where a body is taken, a missing one is the empty object. */
export function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  const { operation, takesBody } = request.routeOptions.config
  if (!(operation?.body || takesBody) || bytes.length === 0) return {}
  requireJson(request.headers['content-type'])
  if (!isUtf8(bytes)) throw invalid('/body', 'must be UTF-8')
  try {
    return JSON.parse(bytes.toString('utf8'))
  } catch {
    throw invalid('/body', 'must be valid JSON')
  }
}

function requireJson(contentType: string | undefined): void {
  if (contentType === 'application/json') return
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (type !== 'application/json') throw invalid('/headers/content-type', 'must be application/json')
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))
  if (charset && !/^charset="?utf-?8"?$/.test(charset))
    throw invalid('/headers/content-type', 'must not name a charset other than utf-8')
}
