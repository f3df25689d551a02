// JSON lines on standard error, so that standard output is left to what a command has to say.
import pino, { type Logger } from 'pino'

/** The last line of defence: should a secret ever get into a log line, its random part does not. */
const SECRET = /adit_(edge_)?[0-9A-Za-z]{8,}/g

const PENDING_MAX = 4 * 1024 * 1024
const FLUSH_PATIENCE_MS = 1_000

export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
      hooks: { streamWrite: (line) => line.replace(SECRET, 'adit_$1***') },
    },
    // A least length of 1, and not 0, makes flushing wait for what is under way.
    // Not synchronous: somebody who reads the log slowly must not slow down the server. Past the bound, lines are lost.
    pino.destination({ dest: 2, sync: false, minLength: 1, maxLength: PENDING_MAX }),
  )
}

/** Message and stack, not the other members: a driver's error can quote the row it was about. */
function describeError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code } = error as { code?: unknown }
  return { type: error.name, message: error.message, stack: error.stack, ...(code !== undefined && { code }) }
}

/** Waits until the lines are written, but not for a reader who does not read: then the answer is false. */
export async function flushLog(log: Logger): Promise<boolean> {
  const flushed = new Promise<true>((resolve) => log.flush(() => resolve(true)))
  const patience = new Promise<false>((resolve) =>
    setTimeout(() => resolve(false), FLUSH_PATIENCE_MS).unref(),
  )
  return Promise.race([flushed, patience])
}
