// The line in the log that tells of a request: most of its lines by far, so it is put together by hand, for a third of what
// it would take as an object.
import pino, { type DestinationStream, type Logger } from 'pino'

const { streamSym } = pino.symbols

/** What any address is made of; a proxy may say anything. */
const HARMLESS = /^[\w.:%-]*$/

export interface AccessLogEntry {
  requestId: string
  method: string
  /** The pattern rather than the path, which can hold what somebody pasted into it by mistake. */
  route: string | undefined
  /** Told where there is no route. */
  path?: string | undefined
  status: number
  ms: number
  /** Undefined where the connection was gone before. */
  from: string | undefined
  /** Who asked, where that is known. */
  by: string | undefined
}

export function createAccessLog(log: Logger): (answered: AccessLogEntry) => void {
  const stream = (log as unknown as Record<symbol, DestinationStream>)[streamSym] as DestinationStream
  const pid = `","pid":${process.pid},"requestId":"`
  return ({ requestId, method, route, path, status, ms, from, by }) => {
    if (!log.isLevelEnabled('info')) return
    const where = route === undefined ? `"path":${JSON.stringify(path)}` : `"route":"${route}"`
    const who = by === undefined ? '' : `,"by":"${by}"`
    const origin =
      from === undefined ? '' : `,"from":${HARMLESS.test(from) ? `"${from}"` : JSON.stringify(from)}`
    const took = Math.round(ms * 10) / 10
    stream.write(
      `{"level":"info","time":"${isoNow()}${pid}${requestId}","method":"${method}",${where},"status":${status},` +
        `"ms":${took}${origin}${who},"msg":"answered"}\n`,
    )
  }
}

let isoAt = 0
let iso = ''

/** Many lines are of the same millisecond. */
function isoNow(): string {
  const now = Date.now()
  if (now !== isoAt) {
    isoAt = now
    iso = new Date(now).toISOString()
  }
  return iso
}
