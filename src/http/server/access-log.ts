// The access log: one line for each request. Most lines of the log are of this kind, so they are formatted
// here, at a third of the cost of a call to pino.
import pino, { type DestinationStream, type Logger } from 'pino'

const { streamSym } = pino.symbols

/** Needs no escaping; a proxy may send anything. */
const PLAIN = /^[\w.:%-]*$/

export interface AccessLogEntry {
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
  /** The client's IP address; undefined if the connection was closed. */
  from: string | undefined
  /** The id of the authenticated caller. */
  by: string | undefined
}

export function createAccessLog(log: Logger): (entry: AccessLogEntry) => void {
  const stream = (log as unknown as Record<symbol, DestinationStream>)[streamSym] as DestinationStream
  const pid = `","pid":${process.pid},"requestId":"`
  return ({ requestId, traceId, method, route, path, status, ms, from, by }) => {
    if (!log.isLevelEnabled('info')) return
    const target = route === undefined ? `"path":${JSON.stringify(path)}` : `"route":"${route}"`
    const caller = by === undefined ? '' : `,"by":"${by}"`
    const trace = traceId === undefined ? '' : `,"traceId":"${traceId}"`
    const client =
      from === undefined ? '' : `,"from":${PLAIN.test(from) ? `"${from}"` : JSON.stringify(from)}`
    const rounded = Math.round(ms * 10) / 10
    stream.write(
      `{"level":"info","time":"${isoNow()}${pid}${requestId}"${trace},"method":"${method}",${target},` +
        `"status":${status},"ms":${rounded}${client}${caller},"msg":"request completed"}\n`,
    )
  }
}

let isoAt = 0
let iso = ''

/** Cached: many lines are written in the same millisecond. */
function isoNow(): string {
  const now = Date.now()
  if (now !== isoAt) {
    isoAt = now
    iso = new Date(now).toISOString()
  }
  return iso
}
