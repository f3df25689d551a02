// Responses of the API.
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type ApiError, LIMITS } from '../api.ts'

const STATUS: Record<ApiError['error'], number> = {
  invalid_request: 400,
  unauthorized: 401,
  token_used: 401,
  not_found: 404,
  method_not_allowed: 405,
  not_replayable: 409,
  too_large: 413,
  too_many: 429,
  internal: 500,
  target_unreachable: 502,
}

/** The message is for the user. */
export class ApiFailure extends Error {
  override name = 'ApiFailure'
  readonly code: ApiError['error']

  constructor(code: ApiError['error'], message: string) {
    super(message)
    this.code = code
  }
}

export const SECURITY_HEADERS = {
  'cache-control': 'no-store',
  'cross-origin-opener-policy': 'same-origin',
  'cross-origin-resource-policy': 'same-origin',
  'referrer-policy': 'no-referrer',
  'x-content-type-options': 'nosniff',
  'x-frame-options': 'DENY',
} as const

export function sendJson(response: ServerResponse, value: unknown, status = 200): void {
  const body = JSON.stringify(value)
  response.writeHead(status, {
    'content-type': 'application/json; charset=utf-8',
    'content-length': Buffer.byteLength(body),
  })
  response.end(body)
}

export function sendFailure(response: ServerResponse, { code, message }: ApiFailure): void {
  // The rest of a request that is too large is not read.
  if (code === 'too_large') response.setHeader('connection', 'close')
  sendJson(response, { error: code, message } satisfies ApiError, STATUS[code])
}

/** An empty body is an empty object. */
export async function readJson(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  let bytes = 0
  for await (const chunk of request as AsyncIterable<Buffer>) {
    bytes += chunk.length
    if (bytes > LIMITS.requestBytes)
      throw new ApiFailure('too_large', `The request has more than ${LIMITS.requestBytes} bytes.`)
    chunks.push(chunk)
  }
  if (bytes === 0) return {}
  try {
    const value: unknown = JSON.parse(Buffer.concat(chunks).toString())
    if (typeof value === 'object' && value !== null && !Array.isArray(value))
      return value as Record<string, unknown>
  } catch {
    // Reported below.
  }
  throw new ApiFailure('invalid_request', 'The request is not a JSON object.')
}
