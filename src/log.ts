// The log: JSON lines on standard error, with secrets masked. Standard output belongs to the commands.
import pino, { type DestinationStream, type Logger } from 'pino'

/** The object that sonic-boom uses too. */
const fs = process.getBuiltinModule('node:fs')

const SECRET_PREFIX = 'adit_'
/** The last line of defense, should a secret get into a log line: its random part is masked. */
const SECRET = /adit_(edge_)?[0-9A-Za-z]{8,}/g

/** Lines are written in batches: a write for each would cost more than creating the line. */
const BATCH_BYTES = 32 * 1024
/** Of a UTF-16 code unit in UTF-8. */
const CHAR_BYTES_MAX = 3
const WRITE_BYTES_MAX = 64 * 1024
const FLUSH_DELAY_MS = 50
/** If standard error is not read, further lines are dropped. */
const BUFFER_BYTES_MAX = 4 * 1024 * 1024
const FLUSH_TIMEOUT_MS = 3_000
const EXIT_RETRIES_MAX = 10

export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: describeError },
    },
    createDestination(),
  )
}

/**
 * Asynchronous, so that a slow reader of the log does not block the server. If writing fails (disk full,
 * terminal closed), lines are kept up to the limit and written once that is possible again.
 */
function createDestination(): DestinationStream & { flush(done: () => void): void } {
  const destination = pino.destination({
    dest: 2,
    sync: false,
    // It gets whole batches.
    minLength: 1,
    maxWrite: WRITE_BYTES_MAX,
    // Texts would be measured again with each one that is added.
    contentMode: 'buffer',
    maxLength: BUFFER_BYTES_MAX,
  })
  destination.on('error', () => {})
  // Its types know neither this nor buffers.
  const setMinLength = (bytes: number) => Object.assign(destination, { minLength: bytes })
  const write = destination.write.bind(destination) as unknown as (bytes: Buffer) => boolean
  // Lines are encoded into one buffer, which costs less than a buffer for each line.
  const batch = Buffer.allocUnsafeSlow(BATCH_BYTES)
  let used = 0
  function writeBatch(): void {
    if (used > 0) write(Buffer.from(batch.subarray(0, used)))
    used = 0
  }
  function add(line: string): void {
    const bytesMax = line.length * CHAR_BYTES_MAX
    if (used + bytesMax > BATCH_BYTES) writeBatch()
    if (bytesMax > BATCH_BYTES) write(Buffer.from(line))
    else used += batch.write(line, used)
  }
  // pino calls these two when the process exits.
  const flush = destination.flush.bind(destination)
  destination.flush = (done) => {
    writeBatch()
    flush(done)
  }
  const flushSync = destination.flushSync.bind(destination)
  destination.flushSync = () => {
    // Only adds the batch to what is flushed: an asynchronous write would be lost when the process exits.
    setMinLength(Number.POSITIVE_INFINITY)
    writeBatch()
    withFailingWritesDropped(flushSync)
    setMinLength(1)
  }
  // Instead of `periodicFlush`, which makes an empty write at each interval while nothing is logged.
  let isFlushScheduled = false
  function flushBatch(): void {
    isFlushScheduled = false
    writeBatch()
  }
  return {
    write(line) {
      add(line.includes(SECRET_PREFIX) ? line.replace(SECRET, 'adit_$1***') : line)
      if (isFlushScheduled) return
      isFlushScheduled = true
      setTimeout(flushBatch, FLUSH_DELAY_MS).unref()
    },
    // Twice: while a write is in progress, the first one does not wait for lines that were added since.
    flush: (done) => destination.flush(() => destination.flush(done)),
  }
}

/** pino flushes when the process exits, and sonic-boom would repeat a failing write forever. */
function withFailingWritesDropped(flushSync: () => void): void {
  const { writeSync } = fs
  let retriesLeft = EXIT_RETRIES_MAX
  fs.writeSync = ((fd: number, bytes: Buffer) => {
    try {
      return writeSync(fd, bytes)
    } catch (error) {
      // Standard error is a pipe that is not read: sonic-boom waits 100 ms before it tries again.
      if ((error as NodeJS.ErrnoException).code === 'EAGAIN' && retriesLeft-- > 0) throw error
      return bytes.length
    }
  }) as typeof writeSync
  try {
    flushSync()
  } finally {
    fs.writeSync = writeSync
  }
}

/** Message and stack, not the other members: a driver's error can quote the row that caused it. */
function describeError(error: unknown) {
  if (!(error instanceof Error)) return { message: String(error) }
  const { code } = error as { code?: unknown }
  return { type: error.name, message: error.message, stack: error.stack, ...(code !== undefined && { code }) }
}

/** False if the lines could not be written in time, because standard error is not read. */
export async function flushLog(log: Logger): Promise<boolean> {
  const flushed = new Promise<true>((resolve) => log.flush(() => resolve(true)))
  const timeout = new Promise<false>((resolve) => setTimeout(() => resolve(false), FLUSH_TIMEOUT_MS).unref())
  return Promise.race([flushed, timeout])
}
