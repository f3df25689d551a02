// Which database errors mean "cannot answer just now", and which "somebody was quicker, try again".
import { storageFaultOf } from './storage-fault.ts'

/** Conditions of PostgreSQL by SQLSTATE; a class of two characters stands for all of its codes. */
const POSTGRES_LOST = [
  '08', // connection exceptions
  '57P01', // shutting down
  '57P02',
  '57P03', // starting up
  '57P05',
  '25006', // read-only: a standby, in mid-failover
]
const POSTGRES_UNAVAILABLE = [
  '53', // out of connections, memory or disk
  '57014', // statement timeout
  '55P03', // lock timeout
  '25P03', // idle in transaction for too long
  '40001', // still in conflict after the last try
  '40P01',
]
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
/** node-postgres gives these no code. */
const DRIVER_LOST =
  /^(Connection terminated|timeout exceeded when trying to connect|Query read timeout|Client (has encountered a connection error|was closed)|Cannot use a pool after)/

const SQLITE_BUSY = 5
const SQLITE_LOCKED = 6

interface DatabaseError extends Error {
  code?: string
  /** SQLite's result code; its low byte is the primary one. */
  errcode?: number
}

/** No connection could be had, whatever the reason: nothing was asked, and nothing can be answered. */
export class DatabaseUnreachable extends Error {
  override name = 'DatabaseUnreachable'
  readonly code: string | undefined

  constructor(cause: DatabaseError) {
    super(cause.message || cause.code, { cause })
    this.code = cause.code
  }

  /** Waiting does not help against a wrong name, password or database. */
  get isMisconfigured(): boolean {
    return /^(28|3D)/.test(this.code ?? '')
  }
}

export function isUnavailable(error: unknown): boolean {
  if (error instanceof DatabaseUnreachable || storageFaultOf(error)) return true
  if (!(error instanceof Error)) return false
  const { code, errcode } = error as DatabaseError
  if (errcode !== undefined) return [SQLITE_BUSY, SQLITE_LOCKED].includes(errcode & 0xff)
  return isConnectionLost(error) || POSTGRES_UNAVAILABLE.some((state) => code?.startsWith(state))
}

/** Nothing more can be asked on the connection that this came from. */
export function isConnectionLost(error: unknown): boolean {
  if (!(error instanceof Error)) return false
  if (error instanceof AggregateError) return error.errors.some(isConnectionLost)
  const { code, message } = error as DatabaseError
  if (code === undefined) return DRIVER_LOST.test(message)
  return SOCKET_LOST.has(code) || POSTGRES_LOST.some((state) => code.startsWith(state))
}

/** A transaction that lost to another one and changed nothing: to be run again from the start. */
export function isConflict(error: unknown): boolean {
  const { code } = error as DatabaseError
  return code === '40001' || code === '40P01'
}

/** Two processes creating the same table: PostgreSQL tells the slower one so in several ways. */
export function isRace(error: unknown): boolean {
  const { code } = error as DatabaseError
  return code === '23505' || code === '42P07' || code === '42710' || code === 'XX000'
}

export function isBusy(error: unknown): boolean {
  const { errcode } = error as DatabaseError
  return errcode !== undefined && (errcode & 0xff) === SQLITE_BUSY
}
