// The access log: one line for each request, at level `info`, or `debug` if it is routine.
import type { Logger } from 'pino'
import { writeRecord } from '../../../lib/log.ts'

const HEALTH_CHECKS = new Set(['/healthz', '/readyz'])

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
  const level = isRoutine(entry) ? 'debug' : 'info'
  if (!log.isLevelEnabled(level)) return
  writeRecord(level, 'request completed', { ...entry, ms: Math.round(entry.ms * 10) / 10 })
}

/** Edges and health checks send requests all the time, also while nobody uses the server. */
const isRoutine = ({ route, status }: AccessLogEntry) =>
  status < 400 && route !== undefined && (route.startsWith('/edge/v1/') || HEALTH_CHECKS.has(route))
