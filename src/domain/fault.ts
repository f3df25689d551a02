// The one error class of the domain. Its public words are kept apart from its cause: the cause goes to the log.
import type { FaultCode } from '../contract/faults.ts'
import { isUnavailable } from '../store/db-errors.ts'
import { storageFaultOf } from '../store/storage-fault.ts'

/** Somebody has to make room first. */
const STORAGE_RETRY_S = 5

export interface Detail {
  path: string
  message: string
}

interface FaultWords {
  message?: string
  details?: Detail[]
  cause?: unknown
  retryAfterS?: number
  isLogged?: boolean
}

export class Fault extends Error {
  override name = 'Fault'
  readonly code: FaultCode
  /** Whether the cause was logged where it arose, once for all requests that it fails. */
  readonly isLogged: boolean
  readonly details: Detail[]
  readonly retryAfterS: number | undefined

  constructor(code: FaultCode, words: FaultWords = {}) {
    super(words.message ?? code, { cause: words.cause })
    this.code = code
    this.details = words.details ?? []
    this.retryAfterS = words.retryAfterS
    this.isLogged = words.isLogged ?? false
  }
}

export const invalid = (path: string, message: string) =>
  new Fault('invalid_request', { message: `${path}: ${message}`, details: [{ path, message }] })

/** What nobody foresaw is `internal`; a database that cannot answer is `unavailable`, never a guess. */
export function faultOf(error: unknown): Fault {
  if (error instanceof Fault) return error
  const storage = storageFaultOf(error)
  if (storage)
    return new Fault('unavailable', {
      message: `${storage.summary} Try again later.`,
      retryAfterS: STORAGE_RETRY_S,
      cause: storage,
      isLogged: true,
    })
  if (isUnavailable(error))
    return new Fault('unavailable', {
      message: 'The service is temporarily unavailable. Try again shortly.',
      retryAfterS: 1,
      cause: error,
    })
  return new Fault('internal', { cause: error })
}
