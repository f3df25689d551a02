// What can go wrong with a call: the API's own errors, and that no answer came that could be read.
import type { Static } from 'typebox'
import type { FaultCode, faults } from '../contract/faults.ts'

/** The errors of the API, each with what it carries. */
export type ApiFault = {
  [C in FaultCode]: { error: C } & Omit<Static<(typeof faults)[C]['schema']>, 'error'>
}[FaultCode]

/** There was no answer to go by. */
export interface NoAnswer {
  /** Nobody answered; nobody answered in time; the caller did not want to wait; the answer was no answer of this API. */
  error: 'unreachable' | 'timed_out' | 'aborted' | 'unreadable'
  message: string
}

export type Fault = ApiFault | NoAnswer

/** `switch (error.fault.error)` tells them apart, and what each carries. */
export class AditError extends Error {
  override name = 'AditError'
  readonly fault: Fault
  /** The status of the answer, where there was one. */
  readonly status: number | undefined
  /** Names the answer in the server's log. */
  readonly requestId: string | undefined
  readonly retryAfterS: number | undefined

  constructor(fault: Fault, of: { response?: Response; cause?: unknown } = {}) {
    super(wordsOf(fault), { cause: of.cause })
    this.fault = fault
    this.status = of.response?.status
    this.requestId = of.response?.headers.get('x-request-id') ?? undefined
    const after = of.response?.headers.get('retry-after') ?? ''
    this.retryAfterS = /^\d{1,9}$/.test(after) ? Number(after) : undefined
  }
}

function wordsOf(fault: Fault): string {
  switch (fault.error) {
    case 'invalid_request':
      return fault.details.map(({ path, message }) => `${path} ${message}`.trim()).join('; ')
    case 'not_found':
      return 'There is no such thing here.'
    case 'internal':
      return 'The server failed.'
    default:
      return fault.message
  }
}
