// Errors of the dashboard API, including network failures.
import type { FaultCode } from '../../src/contract/faults.ts'

interface ErrorBody {
  error?: string
  message?: string
  details?: readonly { path: string; message: string }[]
}

type Code = FaultCode | 'unreachable'

const MESSAGES: Partial<Record<Code, string>> = {
  invalid_request: 'The request is invalid.',
  unauthorized: 'Your session has expired. Sign in again.',
  forbidden: 'You do not have permission to do this.',
  not_found: 'Not found. It may have been deleted.',
  rate_limited: 'Too many attempts. Try again later.',
  unavailable: 'The service is temporarily unavailable. Try again shortly.',
  unreachable: 'Could not reach the server. Check your connection and try again.',
}

export class ApiError extends Error {
  override readonly name = 'ApiError'
  readonly code: Code
  readonly status: number
  readonly details: NonNullable<ErrorBody['details']>
  readonly retryAfterS: number | undefined

  constructor(
    code: Code,
    message: string,
    status = 0,
    details: ErrorBody['details'] = [],
    retryAfterS?: number,
  ) {
    super(message)
    this.code = code
    this.status = status
    this.details = details
    this.retryAfterS = retryAfterS
  }

  static unreachable(): ApiError {
    return new ApiError('unreachable', MESSAGES.unreachable as string)
  }

  static signedOut(): ApiError {
    return new ApiError('unauthorized', MESSAGES.unauthorized as string, 401)
  }

  static fromResponse(response: Response, { error, message, details }: ErrorBody): ApiError {
    const code = (error ?? codeForStatus(response.status)) as Code
    const requestId = response.headers.get('x-request-id')
    const text =
      message ??
      (details?.length ? details.map(toSentence).join(' ') : MESSAGES[code]) ??
      internalError(requestId)
    const retryAfterS = Number(response.headers.get('retry-after') ?? Number.NaN)
    return new ApiError(code, text, response.status, details, retryAfterS >= 0 ? retryAfterS : undefined)
  }
}

const internalError = (requestId: string | null): string =>
  requestId === null
    ? 'Internal server error. Try again.'
    : `Internal server error. Try again, or send your server admin this request ID: ${requestId}.`

/** Whether a retry may succeed; failed queries with such an error are retried automatically. */
export const isTransient = (error: unknown): error is ApiError =>
  error instanceof ApiError && ['unreachable', 'unavailable', 'rate_limited'].includes(error.code)

/** The code for a response without one: that of a proxy whose upstream is down. */
const codeForStatus = (status: number): Code =>
  status === 429 ? 'rate_limited' : status >= 502 && status <= 504 ? 'unreachable' : 'internal'

/** The validation error of one field, to show next to it; undefined if the error is about anything else. */
export function fieldError(error: unknown, field: string): string | undefined {
  const details = error instanceof ApiError && error.code === 'invalid_request' ? error.details : []
  const [only] = details
  return details.length === 1 && only?.path.endsWith(`/${field}`) ? toSentence(only) : undefined
}

function toSentence({ path, message }: { path: string; message: string }): string {
  const field = path.split('/').at(-1) ?? ''
  const text = `${field === 'url' ? 'URL' : field} ${message}.`.trim()
  return text.charAt(0).toUpperCase() + text.slice(1)
}
