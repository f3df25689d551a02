// Bodies. Whatever the content type says, a body takes this one way, so no spelling of it can skip validation.
import type { FastifyRequest } from 'fastify'
import { invalid } from '../domain/fault.ts'

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true })

/** An operation without a body ignores one; where a body is taken, a missing one is the empty object. */
export function parseBody(request: FastifyRequest, bytes: Buffer): unknown {
  if (!request.routeOptions.config.operation?.body || bytes.length === 0) return {}
  requireJson(request.headers['content-type'])
  let text: string
  try {
    text = utf8.decode(bytes)
  } catch {
    throw invalid('/body', 'must be UTF-8')
  }
  try {
    return JSON.parse(text)
  } catch {
    throw invalid('/body', 'must be valid JSON')
  }
}

function requireJson(contentType: string | undefined): void {
  const [type = '', ...parameters] = (contentType ?? '').split(';').map((part) => part.trim().toLowerCase())
  if (type !== 'application/json') throw invalid('/headers/content-type', 'must be application/json')
  const charset = parameters.find((parameter) => parameter.startsWith('charset='))
  if (charset && !/^charset="?utf-?8"?$/.test(charset))
    throw invalid('/headers/content-type', 'must not name a charset other than utf-8')
}
