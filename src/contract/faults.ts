// The closed list of errors the API can answer with: what each means, its status and its body.
import Type, { type TSchema } from 'typebox'

const InvalidDetail = Type.Object(
  {
    path: Type.String({ description: 'Where the mistake is, as a JSON Pointer into the request.' }),
    message: Type.String({ description: 'What is wrong there.' }),
  },
  { title: 'InvalidDetail' },
)

const message = Type.String({
  description: 'What is wrong and what to do, for people. The wording may change.',
})

const body = <T extends Record<string, TSchema>>(title: string, code: string, more: T) =>
  Type.Object({ error: Type.Literal(code), ...more }, { title })

export const faults = {
  invalid_request: {
    status: 400,
    description: 'The body, the query, a header or a path parameter failed validation.',
    schema: body('InvalidRequest', 'invalid_request', { details: Type.Array(InvalidDetail) }),
    example: {
      error: 'invalid_request',
      details: [{ path: '/query/days', message: 'must be a whole number from 1 to 365' }],
    },
  },
  unauthorized: {
    status: 401,
    description: 'The API key is missing, unknown or revoked; or nobody is signed in.',
    schema: body('Unauthorized', 'unauthorized', { message }),
    example: { error: 'unauthorized', message: 'This API key was revoked. Use another one.' },
  },
  forbidden: {
    status: 403,
    description: 'Whoever is signed in may not do this, or it was asked from another site.',
    schema: body('Forbidden', 'forbidden', { message }),
    example: { error: 'forbidden', message: 'Only admins and owners of this workspace may do this.' },
  },
  not_found: {
    status: 404,
    description: 'There is no such route or resource in this workspace.',
    schema: body('NotFound', 'not_found', {}),
    example: { error: 'not_found' },
  },
  conflict: {
    status: 409,
    description: 'It cannot be done as things stand.',
    schema: body('Conflict', 'conflict', { message }),
    example: { error: 'conflict', message: 'A workspace needs an owner. Make somebody else one first.' },
  },
  idempotency_mismatch: {
    status: 422,
    description: 'This Idempotency-Key was used within the last 24 hours with another body.',
    schema: body('IdempotencyMismatch', 'idempotency_mismatch', { message }),
    example: {
      error: 'idempotency_mismatch',
      message: 'This Idempotency-Key was used with another body. Repeat that body, or send a new key.',
    },
  },
  rate_limited: {
    status: 429,
    description: 'Too many requests, or too many failed attempts; `Retry-After` says when to go on.',
    schema: body('RateLimited', 'rate_limited', { message }),
    example: { error: 'rate_limited', message: 'Too many requests with this API key. Try again in 12 s.' },
  },
  internal: {
    status: 500,
    description: 'The server failed. The `X-Request-Id` of the answer finds the cause in its log.',
    schema: body('Internal', 'internal', {}),
    example: { error: 'internal' },
  },
  unavailable: {
    status: 503,
    description: 'The server cannot reach its database just now; `Retry-After` says when to try again.',
    schema: body('Unavailable', 'unavailable', { message }),
    example: { error: 'unavailable', message: 'The service cannot answer just now. Try again shortly.' },
  },
} as const

export type FaultCode = keyof typeof faults
