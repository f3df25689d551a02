// A refusal of the API, or that it could not be asked at all.
import type { FaultCode } from '../../src/contract/faults.ts'

interface ErrorBody {
  error?: string
  message?: string
  details?: readonly { path: string; message: string }[]
}

type Code = FaultCode | 'unreachable'

const MESSAGES: Partial<Record<Code, string>> = {
  invalid_request: 'Something in this is not as it should be.',
  unauthorized: 'You are not signed in any more.',
  forbidden: 'You may not do this.',
  not_found: 'This does not exist, or no longer.',
  rate_limited: 'Too many attempts. Try again in a while.',
  unavailable: 'The service is temporarily unavailable. Try again shortly.',
  unreachable: 'Adit cannot be reached. Check your connection; this page tries again by itself.',
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

  static of(response: Response, { error, message, details }: ErrorBody): ApiError {
    const code = (error ?? codeOf(response.status)) as Code
    const requestId = response.headers.get('x-request-id')
    const words =
      message ??
      (details?.length ? details.map(sentence).join(' ') : MESSAGES[code]) ??
      `The server failed. Try again${requestId ? `, or tell the operator this request: ${requestId}` : ''}.`
    const retryAfterS = Number(response.headers.get('retry-after') ?? Number.NaN)
    return new ApiError(code, words, response.status, details, retryAfterS >= 0 ? retryAfterS : undefined)
  }
}

/** Whether asking again may help. */
export const isTransient = (error: unknown): error is ApiError =>
  error instanceof ApiError && ['unreachable', 'unavailable', 'rate_limited'].includes(error.code)

/** What a proxy answers when the server behind it is down comes without a code of ours. */
const codeOf = (status: number): Code =>
  status === 429 ? 'rate_limited' : status >= 502 && status <= 504 ? 'unreachable' : 'internal'

/** What is wrong with one field, as a sentence to stand beside it; undefined where that is not why it was refused. */
export function fieldError(error: unknown, field: string): string | undefined {
  const details = error instanceof ApiError && error.code === 'invalid_request' ? error.details : []
  const [only] = details
  return details.length === 1 && only?.path.endsWith(`/${field}`) ? sentence(only) : undefined
}

function sentence({ path, message }: { path: string; message: string }): string {
  const field = path.split('/').at(-1) ?? ''
  const text = `${field === 'email' ? 'e-mail' : field} ${message}.`.trim()
  return text.charAt(0).toUpperCase() + text.slice(1)
}
