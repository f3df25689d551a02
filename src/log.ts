// JSON lines on standard error, so that standard output is left to what a command has to say.
import pino, { type DestinationStream, type Logger } from 'pino'

/** The last line of defence: should a secret ever get into a log line, its random part does not. */
const SECRET = /adit_(edge_)?[0-9A-Za-z]{8,}/g

const PENDING_MAX = 4 * 1024 * 1024
const FLUSH_PATIENCE_MS = 1_000
/** Nobody who reads along notices, and a busy server writes hundreds of lines at once. */
const GATHER_MS = 50
const GATHER_MAX = 64 * 1024

export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
    },
    gather(),
  )
}

/** Lines are written together: each by itself would cost more than it took to make. */
function gather(): DestinationStream & { flush(done: () => void): void } {
  let pending = ''
  let timer: NodeJS.Timeout | undefined
  let destination: ReturnType<typeof openDestination> | undefined

  function handOver(): void {
    clearTimeout(timer)
    timer = undefined
    if (pending === '') return
    const lines = pending.replace(SECRET, 'adit_$1***')
    pending = ''
    destination ??= openDestination()
    destination.write(lines)
  }

  return {
    write(line) {
      // Heard before the destination hears of the exit, and writes what it was given.
      if (!destination && pending === '') process.once('exit', handOver)
      pending += line
      if (pending.length >= GATHER_MAX) handOver()
      else timer ??= setTimeout(handOver, GATHER_MS)
    },
    flush(done) {
      handOver()
      if (destination) destination.flush(done)
      else done()
    },
  }
}

/**
 * Not synchronous: somebody who reads the log slowly must not slow down the server. Past the bound, lines are lost. A
 * least length of 1, and not 0, makes flushing wait for what is under way.
 */
const openDestination = () => pino.destination({ dest: 2, sync: false, minLength: 1, maxLength: PENDING_MAX })

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
