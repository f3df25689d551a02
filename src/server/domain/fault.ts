// The one error class of the domain. Message and details are public; the cause is for the log only.
import type { FaultCode } from '../../contract/faults.ts'
import {
  CommitsBlocked,
  CommitUnconfirmed,
  DatabaseUnreachable,
  isConnectionLost,
  isUnavailable,
} from '../store/engine/errors.ts'
import { toStorageFault } from '../store/engine/storage-fault.ts'

/** Storage faults need an operator, so clients should not retry immediately. */
const STORAGE_RETRY_S = 5

export interface FaultDetail {
  path: string
  message: string
}

interface FaultOptions {
  message?: string
  details?: FaultDetail[]
  cause?: unknown
  retryAfterS?: number
  isLogged?: boolean
}

export class Fault extends Error {
  override name = 'Fault'
  readonly code: FaultCode
  /** Whether the cause was logged already, once for all requests that fail because of it. */
  readonly isLogged: boolean
  readonly details: FaultDetail[]
  readonly retryAfterS: number | undefined

  constructor(code: FaultCode, options: FaultOptions = {}) {
    super(options.message ?? code, { cause: options.cause })
    this.code = code
    this.details = options.details ?? []
    this.retryAfterS = options.retryAfterS
    this.isLogged = options.isLogged ?? false
  }
}

export const invalid = (path: string, message: string) =>
  new Fault('invalid_request', { message: `${path}: ${message}`, details: [{ path, message }] })

/** A fault whose message gives the reason, for operators. */
export function readinessFault(error: unknown): Fault {
  const fault = toFault(error)
  if (fault.code !== 'unavailable' || fault === error || toStorageFault(error)) return fault
  const isLost = error instanceof DatabaseUnreachable || isConnectionLost(error)
  const message = isLost ? 'The database cannot be reached.' : 'The database does not respond in time.'
  return new Fault('unavailable', { message, retryAfterS: 1, cause: error })
}

/** Maps any error to a fault: a failing database is `unavailable`, an unexpected error `internal`. */
export function toFault(error: unknown): Fault {
  if (error instanceof Fault) return error
  const storage = toStorageFault(error)
  if (storage)
    return new Fault('unavailable', {
      message: `${storage.summary} Try again later.`,
      retryAfterS: STORAGE_RETRY_S,
      cause: storage,
      isLogged: true,
    })
  if (error instanceof CommitsBlocked)
    return new Fault('unavailable', {
      message: 'The database does not confirm commits. Nothing was changed. Try again later.',
      retryAfterS: STORAGE_RETRY_S,
      cause: error,
      isLogged: true,
    })
  if (error instanceof CommitUnconfirmed)
    return new Fault('unavailable', {
      message:
        'The database has not confirmed this change, which may still take effect. Check it, or try again.',
      retryAfterS: STORAGE_RETRY_S,
      cause: error,
    })
  if (isUnavailable(error))
    return new Fault('unavailable', {
      message: 'The service is temporarily unavailable. Try again shortly.',
      retryAfterS: 1,
      cause: error,
    })
  return new Fault('internal', { cause: error })
}
