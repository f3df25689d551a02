// Errors of the client: those of the API, and calls without a usable response.
import { messageLine } from '../lib/net/untrusted-text.ts'
import type { ApiFault } from './api.ts'

export type { ApiFault }

/** There was no usable response, so it is not known whether the call took effect. */
export interface NoResponse {
  /**
   * `unreachable`: the server cannot be reached. `timed_out`: no response within the timeout. `aborted`: by
   * the caller's signal. `unreadable`: the response is not from this API.
   */
  error: 'unreachable' | 'timed_out' | 'aborted' | 'unreadable'
  message: string
}

export type Fault = ApiFault | NoResponse

/**
 * Thrown by every method of the client. `switch (error.fault.error)` narrows to the fields of each fault. The
 * message is one line that can be printed; the fault is as the server sent it.
 */
export class AditError extends Error {
  override name = 'AditError'
  readonly fault: Fault
  /** HTTP status of the response; undefined if there was none. */
  readonly status: number | undefined
  /** `X-Request-Id` of the response, which identifies it in the server's log. */
  readonly requestId: string | undefined
  readonly retryAfterS: number | undefined

  constructor(fault: Fault, { response, cause }: { response?: Response; cause?: unknown } = {}) {
    super(messageLine(errorMessage(fault)), { cause })
    this.fault = fault
    this.status = response?.status
    this.requestId = response?.headers.get('x-request-id') ?? undefined
    const retryAfter = response?.headers.get('retry-after') ?? ''
    this.retryAfterS = /^\d{1,9}$/.test(retryAfter) ? Number(retryAfter) : undefined
  }
}

function errorMessage(fault: Fault): string {
  switch (fault.error) {
    case 'invalid_request':
      return fault.details.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')
    case 'not_found':
      return 'Not found.'
    case 'internal':
      return 'Internal server error.'
    default:
      return fault.message
  }
}

const isDetail = (detail: { path?: unknown; message?: unknown } | null) =>
  typeof detail?.path === 'string' && typeof detail.message === 'string'

const hasMessage = ({ message }: { message?: unknown }) => typeof message === 'string'

/** Whether a body has the fields of its error code; if not, another server sent it. */
const isComplete: Record<ApiFault['error'], (body: { details?: unknown; message?: unknown }) => boolean> = {
  invalid_request: ({ details }) => Array.isArray(details) && details.every(isDetail),
  not_found: () => true,
  internal: () => true,
  unauthorized: hasMessage,
  forbidden: hasMessage,
  conflict: hasMessage,
  idempotency_mismatch: hasMessage,
  rate_limited: hasMessage,
  unavailable: hasMessage,
}

/** The fault of an unsuccessful response, which may come from a proxy and not have a body of this API. */
export function responseFault(response: Response, body: object | undefined): Fault {
  const { error } = (body ?? {}) as { error?: unknown }
  if (
    typeof error === 'string' &&
    Object.hasOwn(isComplete, error) &&
    isComplete[error as ApiFault['error']](body ?? {})
  )
    return body as ApiFault
  const { status } = response
  if (status === 401)
    return {
      error: 'unauthorized',
      message: 'HTTP 401, but not from an Adit server. Check the server URL, and a proxy in front.',
    }
  if (status === 429) return { error: 'rate_limited', message: 'Too many requests.' }
  // The server may have processed the request nevertheless.
  if (status >= 502 && status <= 504)
    return { error: 'unreachable', message: `A proxy cannot reach the server (HTTP ${status}).` }
  if (response.type === 'opaqueredirect' || (status >= 300 && status < 400)) {
    const location = response.headers.get('location')
    const target = location ? ` to ${location}` : ''
    return { error: 'unreadable', message: `The server redirects${target}. Correct the server URL.` }
  }
  return {
    error: 'unreadable',
    message: `The response (HTTP ${status}) is not from an Adit server. Check the server URL.`,
  }
}
