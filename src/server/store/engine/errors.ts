// Classifies database errors: unavailable, connection lost, conflict to retry.
import { isShardMoved, isWorkerError } from './postgres/citus-errors.ts'
import { findRemedy } from './postgres/remedies.ts'
import { toStorageFault } from './storage-fault.ts'

/** PostgreSQL SQLSTATE codes, or what several codes start with. */
const POSTGRES_LOST = [
  '08', // connection exceptions
  '57P', // shutdown, crash, starting up, database dropped, idle session timeout
  '25P03', // idle-in-transaction timeout, which ends the session
  '25P04', // transaction timeout, which ends the session
  '25006', // read-only transaction: a standby during a failover
]
const POSTGRES_UNAVAILABLE = [
  '53', // out of connections, memory or disk
  '57014', // statement timeout
  '55P03', // lock timeout
  '40001', // serialization failure after the last attempt
  '40P01', // deadlock
]
const INTERNAL_ERROR = 'XX000'
const SOCKET_LOST = new Set([
  'ECONNREFUSED',
  'ECONNRESET',
  'EPIPE',
  'ETIMEDOUT',
  'EHOSTUNREACH',
  'ENETUNREACH',
  'ENOTFOUND',
  'EAI_AGAIN',
])
/** node-postgres errors without a code. */
const DRIVER_LOST = new RegExp(
  '^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|' +
    'Client (has encountered a connection error|was closed)|Cannot use a pool after)',
)

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6
/** Reported for a value of the wrong type: a sum of more than 63 bits becomes a floating-point number. */
const SQLITE_CONSTRAINT_DATATYPE = 3091

interface DatabaseError extends Error {
  code?: string
  /** The function of PostgreSQL that failed. */
  routine?: string
  /** SQLite's result code; its low byte is the primary one. */
  errcode?: number
}

/** No connection could be established, so no query was sent. */
export class DatabaseUnreachable extends Error {
  override name = 'DatabaseUnreachable'
  readonly code: string | undefined
  /** If set, retrying does not help. */
  readonly remedy: string | undefined

  constructor(cause: DatabaseError) {
    super(cause.message || cause.code, { cause })
    this.code = cause.code
    this.remedy = findRemedy(cause)
  }
}

/** The work was not queued, because the database cannot keep up. */
export class Overloaded extends Error {
  override name = 'Overloaded'
}

/** The transaction was not started, or was aborted before its commit, because commits hang. */
export class CommitsBlocked extends Error {
  override name = 'CommitsBlocked'

  constructor() {
    super('the database does not confirm commits')
  }
}

/** The commit was sent and not confirmed: the transaction may be committed, or may be later. */
export class CommitUnconfirmed extends Error {
  override name = 'CommitUnconfirmed'
}

/** With strict fencing: another server may have been promoted. */
export class PrimaryUnconfirmed extends Error {
  override name = 'PrimaryUnconfirmed'

  constructor() {
    super('No standby confirms that the database is still the primary.')
  }
}

export function isUnavailable(error: unknown): boolean {
  if (unavailable.some((type) => error instanceof type) || toStorageFault(error)) return true
  if (!(error instanceof Error)) return false
  const { code, errcode } = error as DatabaseError
  if (errcode !== undefined) return [SQLITE_BUSY, SQLITE_LOCKED].includes(errcode & 0xff)
  return (
    isConnectionLost(error) ||
    isWorkerLost(error) ||
    isShardMoved(error) ||
    POSTGRES_UNAVAILABLE.some((state) => code?.startsWith(state))
  )
}

const unavailable = [DatabaseUnreachable, Overloaded, CommitsBlocked, CommitUnconfirmed, PrimaryUnconfirmed]

/** A worker of Citus cannot be reached, closed the connection without a response, or failed to commit. */
export function isWorkerLost(error: unknown): boolean {
  const { code = '' } = error as DatabaseError
  return isWorkerError(error) && [INTERNAL_ERROR, ...POSTGRES_LOST].some((state) => code.startsWith(state))
}

/** A statement for one shard of Citus involves several, because tables were distributed or a shard split. */
export const isMultiShard = (error: unknown): boolean => isUnsupported(error)

/** Whether the connection that threw this is unusable. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error) || isWorkerError(error)) return false
  if (error instanceof AggregateError) return error.errors.some(isConnectionLost)
  const { code, message } = error as DatabaseError
  if (code === undefined) return DRIVER_LOST.test(message)
  return SOCKET_LOST.has(code) || POSTGRES_LOST.some((state) => code.startsWith(state))
}

/**
 * Serialization failure, deadlock, moved shard or lost prepared statement: the transaction was rolled back
 * and can be retried.
 */
export function isConflict(error: unknown): boolean {
  const { code } = error as DatabaseError
  return code === '40001' || code === '40P01' || isShardMoved(error) || isNotPrepared(error)
}

/**
 * The session has no prepared statement of that name, or has another client's: behind a pooler, each
 * transaction may run on another session. Or a migration has changed the columns of the statement.
 */
export function isNotPrepared(error: unknown): boolean {
  const { code = '', routine } = error as DatabaseError
  return ['26000', '42P05'].includes(code) || routine === 'RevalidateCachedQuery'
}

const SQLITE_ERROR = 1

export function isMissingTable(error: unknown): boolean {
  const { code, errcode, message } = error as DatabaseError
  return code === '42P01' || (errcode === SQLITE_ERROR && message.startsWith('no such table'))
}

/** A statement exceeded its timeout. */
export const isCanceled = (error: unknown): boolean => (error as DatabaseError).code === '57014'

/** The server does not support the statement. */
export const isUnsupported = (error: unknown): boolean => (error as DatabaseError).code === '0A000'

/**
 * Another process created the same table at the same time, for which PostgreSQL has several codes. Only for
 * errors of statements that change the schema: others have the same codes.
 */
export function isSchemaRace(error: unknown): boolean {
  const { code = '' } = error as DatabaseError
  return ['23505', '42P07', '42710', INTERNAL_ERROR].includes(code)
}

export function isBusy(error: unknown): boolean {
  const { errcode } = error as DatabaseError
  return errcode !== undefined && (errcode & 0xff) === SQLITE_BUSY
}

/** A value or a sum exceeds 63 bits. On SQLite, the driver rejects such a parameter. */
export function isOutOfRange(error: unknown): boolean {
  const { code, errcode } = error as DatabaseError
  return code === '22003' || code === 'ERR_INVALID_ARG_VALUE' || errcode === SQLITE_CONSTRAINT_DATATYPE
}
