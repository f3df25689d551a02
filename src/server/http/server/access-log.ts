// The access log. A line for each request (`all`), or (`summary`) a line for each failed or slow request and,
// once a minute, one for each group of requests that have caller, address, route and status in common. Lines
// are at level `info`, those of routine requests at `debug`.
import type { Logger } from 'pino'
import { writeRecord } from '../../../lib/log.ts'

type AccessLogMode = 'all' | 'summary' | 'off'

const HEALTH_CHECKS = new Set(['/healthz', '/readyz'])

const INTERVAL_MS = 60_000
const SLOW_MS = 1_000
/** Limits of one interval. Requests beyond them are only counted. */
const GROUPS_MAX = 5_000
const LINES_MAX = 1_000

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
  /** Bytes of the response body; 0 for a stream. */
  bytes: number
  /** Undefined if the connection was closed. */
  clientIp: string | undefined
  /** The id of the authenticated caller. */
  callerId: string | undefined
}

interface Group {
  /** The entry of its first request. */
  readonly entry: AccessLogEntry
  requests: number
  /** How many have a line of their own. */
  logged: number
  bytes: number
  ms: number
  msMax: number
}

export interface AccessLog {
  record(entry: AccessLogEntry): void
  /** Writes what has been counted. */
  stop(): void
}

export function createAccessLog(log: Logger, mode: AccessLogMode): AccessLog {
  if (mode === 'off') return { record() {}, stop() {} }
  const sink = mode === 'all' ? { record: writeEntry, stop() {} } : new AccessSummary()
  const hasDebug = log.isLevelEnabled('debug')
  const hasInfo = log.isLevelEnabled('info')
  return {
    record(entry) {
      if (hasDebug || (hasInfo && !isRoutine(entry))) sink.record(entry)
    },
    stop: () => sink.stop(),
  }
}

/** Edges and health checks send requests all the time, also while nobody uses the server. */
const isRoutine = ({ route, status }: AccessLogEntry) =>
  status < 400 && route !== undefined && (route.startsWith('/edge/v1/') || HEALTH_CHECKS.has(route))

class AccessSummary implements AccessLog {
  readonly #timer = setInterval(() => this.#write(), INTERVAL_MS).unref()
  #since = Date.now()
  #groups = new Map<string, Group>()
  #ungrouped = { requests: 0, bytes: 0 }
  #lines = 0

  record(entry: AccessLogEntry): void {
    const { callerId, clientIp, status, method, route, bytes, ms } = entry
    const name = `${callerId} ${clientIp} ${status} ${method} ${route}`
    let group = this.#groups.get(name)
    const isFirst = group === undefined
    if (!group && this.#groups.size < GROUPS_MAX) {
      group = { entry, requests: 0, logged: 0, bytes: 0, ms: 0, msMax: 0 }
      this.#groups.set(name, group)
    }
    // Equal failures get one line, so that a client that repeats them cannot fill the log.
    const isNotable = status >= 400 ? isFirst : ms >= SLOW_MS
    const hasLine = isNotable && this.#lines < LINES_MAX
    if (hasLine) {
      this.#lines += 1
      writeEntry(entry)
    }
    if (!group) {
      this.#ungrouped.requests += 1
      this.#ungrouped.bytes += bytes
      return
    }
    group.requests += 1
    group.bytes += bytes
    group.ms += ms
    if (ms > group.msMax) group.msMax = ms
    if (hasLine) group.logged += 1
  }

  stop(): void {
    clearInterval(this.#timer)
    this.#write()
  }

  #write(): void {
    const since = new Date(this.#since).toISOString()
    for (const group of this.#groups.values()) if (group.logged < group.requests) writeGroup(since, group)
    if (this.#ungrouped.requests > 0)
      writeRecord('info', 'more requests completed than the access log groups', { since, ...this.#ungrouped })
    this.#since = Date.now()
    this.#groups = new Map()
    this.#ungrouped = { requests: 0, bytes: 0 }
    this.#lines = 0
  }
}

const levelFor = (entry: AccessLogEntry) => (isRoutine(entry) ? 'debug' : 'info')

const writeEntry = (entry: AccessLogEntry): void =>
  writeRecord(levelFor(entry), 'request completed', { ...entry, ms: rounded(entry.ms) })

function writeGroup(since: string, { entry, requests, bytes, ms, msMax }: Group): void {
  const { method, route, status, clientIp, callerId } = entry
  writeRecord(levelFor(entry), 'requests completed', {
    since,
    method,
    route,
    status,
    clientIp,
    callerId,
    requests,
    bytes,
    msMean: rounded(ms / requests),
    msMax: rounded(msMax),
  })
}

const rounded = (ms: number) => Math.round(ms * 10) / 10
