// The access log: one line for each request.
import type { Logger } from 'pino'
import { writeRecord } from '../../../lib/log.ts'

interface AccessLogEntry {
  requestId: string
  /** Undefined if the client sent none. */
  traceId: string | undefined
  method: string
  /** The pattern, not the path: a path may contain a secret by mistake. */
  route: string | undefined
  /** Logged if there is no route. */
  path?: string | undefined
  status: number
  ms: number
  /** Undefined if the connection was closed. */
  clientIp: string | undefined
  /** The id of the authenticated caller. */
  callerId: string | undefined
}

export function logAccess(log: Logger, entry: AccessLogEntry): void {
  if (!log.isLevelEnabled('info')) return
  writeRecord('request completed', { ...entry, ms: Math.round(entry.ms * 10) / 10 })
}
