// The closed list of API errors: code, status and body of each.
import Type, { type TSchema } from 'typebox'

const InvalidDetail = Type.Object(
  {
    path: Type.String({ description: 'JSON Pointer to the invalid part of the request.' }),
    message: Type.String({ description: 'The rule that it violates.' }),
  },
  { title: 'InvalidDetail' },
)

const message = Type.String({
  description: 'Human-readable explanation. The wording may change.',
})

const body = <T extends Record<string, TSchema>>(title: string, code: string, more: T) =>
  Type.Object({ error: Type.Literal(code), ...more }, { title })

export const faults = {
  invalid_request: {
    status: 400,
    description: 'The body, a query parameter, a header or a path parameter is invalid.',
    schema: body('InvalidRequest', 'invalid_request', { details: Type.Array(InvalidDetail) }),
    example: {
      error: 'invalid_request',
      details: [{ path: '/query/days', message: 'must be a whole number from 1 to 365' }],
    },
  },
  unauthorized: {
    status: 401,
    description: 'The credentials are missing, unknown, revoked or expired.',
    schema: body('Unauthorized', 'unauthorized', { message }),
    example: { error: 'unauthorized', message: 'This API key was revoked. Use another one.' },
  },
  forbidden: {
    status: 403,
    description:
      'The user or the API key may not do this, or the request comes from another origin. The message says why.',
    schema: body('Forbidden', 'forbidden', { message }),
    example: { error: 'forbidden', message: 'Only admins and owners of this workspace may do this.' },
  },
  not_found: {
    status: 404,
    description: 'The path does not exist, or the workspace has no such resource.',
    schema: body('NotFound', 'not_found', {}),
    example: { error: 'not_found' },
  },
  conflict: {
    status: 409,
    description: 'The request conflicts with the current state.',
    schema: body('Conflict', 'conflict', { message }),
    example: {
      error: 'conflict',
      message: 'This is the last owner of the workspace. Make another member an owner first.',
    },
  },
  idempotency_mismatch: {
    status: 422,
    description: 'This `Idempotency-Key` was used with a different body in the last 24 hours.',
    schema: body('IdempotencyMismatch', 'idempotency_mismatch', { message }),
    example: {
      error: 'idempotency_mismatch',
      message: 'This Idempotency-Key was used with another body. Repeat that body, or send a new key.',
    },
  },
  rate_limited: {
    status: 429,
    description: 'Too many requests or failed attempts. Retry after `Retry-After` seconds.',
    schema: body('RateLimited', 'rate_limited', { message }),
    example: {
      error: 'rate_limited',
      message: 'Too many requests with this API key. Try again in 12 seconds.',
    },
  },
  internal: {
    status: 500,
    description: 'Internal error. Search the server’s log for the `X-Request-Id` of the response.',
    schema: body('Internal', 'internal', {}),
    example: { error: 'internal' },
  },
  unavailable: {
    status: 503,
    description:
      'The server is temporarily unavailable, for example without its database. Retry after `Retry-After` ' +
      'seconds.',
    schema: body('Unavailable', 'unavailable', { message }),
    example: { error: 'unavailable', message: 'The service is temporarily unavailable. Try again shortly.' },
  },
} as const

export type FaultCode = keyof typeof faults

/** The same error in the form of OAuth (RFC 6749, section 5.2). */
export const oauthError = (code: FaultCode) => ({
  schema: Type.Object({ error: Type.Literal(code), error_description: message }, { title: `OAuth_${code}` }),
  example: { error: code, error_description: faults[code].description },
})
