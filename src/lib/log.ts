// The log: JSON lines on standard error, with secrets masked. Standard output belongs to the commands.
import { write, writeSync } from 'node:fs'
import pino, { type Logger } from 'pino'

const SECRET_PREFIX = 'adit_'
/** Masks the random part of a secret that gets into a log line by mistake. */
const SECRET = /adit_(edge_|device_)?[0-9A-Za-z]{8,}/g

const STDERR = 2
/** Lines are written in batches: a write for each would cost more than creating the line. */
const BATCH_CHARS = 32 * 1024
const FLUSH_DELAY_MS = 50
/** Lines beyond this are dropped while standard error cannot be written. */
const BUFFER_CHARS_MAX = 4 * 1024 * 1024
const RETRY_MS = 100
const FLUSH_TIMEOUT_MS = 3_000
const EXIT_RETRIES_MAX = 10
const CAUSES_MAX = 3

export function createLog(level: string): Logger {
  return pino(
    {
      level,
      base: { pid: process.pid },
      formatters: { level: (label) => ({ level: label }) },
      timestamp: pino.stdTimeFunctions.isoTime,
      serializers: { err: (error) => describeError(error) },
    },
    stderr,
  )
}

/** Writes the access log, which has thousands of lines a second: pino takes four times as long for each. */
export function writeRecord(level: 'debug' | 'info', message: string, fields: object): void {
  stderr.write(formatRecord(level, message, fields))
}

const formatRecord = (level: string, msg: string, fields: object) =>
  `${JSON.stringify({ level, time: now(), pid: process.pid, ...fields, msg })}\n`

let timestampMs = 0
let timestamp = ''

/** Cached: many lines are written in the same millisecond. */
function now(): string {
  const ms = Date.now()
  if (ms !== timestampMs) {
    timestampMs = ms
    timestamp = new Date(ms).toISOString()
  }
  return timestamp
}

/**
 * Asynchronous, so that a slow reader of the log does not block the server. If writing fails (disk full,
 * terminal closed), lines are kept up to the limit and written once that is possible again.
 */
class LogStream {
  #lines: string[] = []
  #chars = 0
  /** The bytes that are being written, or are written again after a failure. */
  #batch: Buffer = Buffer.alloc(0)
  #isWriting = false
  #timer: NodeJS.Timeout | undefined
  #isRetrying = false
  #dropped = 0
  #onFlushed: (() => void)[] = []

  write(line: string): void {
    if (this.#chars + this.#batch.length > BUFFER_CHARS_MAX) {
      this.#dropped += 1
      return
    }
    this.#lines.push(line.includes(SECRET_PREFIX) ? line.replace(SECRET, 'adit_$1***') : line)
    this.#chars += line.length
    if (this.#chars >= BATCH_CHARS) this.#writeBatch()
    else this.#timer ??= setTimeout(() => this.#writeBatch(), FLUSH_DELAY_MS).unref()
  }

  flush(done: () => void): void {
    this.#onFlushed.push(done)
    this.#writeBatch()
  }

  #writeBatch(): void {
    if (this.#isWriting || this.#isRetrying) return
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#batch.length === 0) this.#batch = this.#takeLines()
    if (this.#batch.length === 0) {
      for (const done of this.#onFlushed.splice(0)) done()
      return
    }
    this.#isWriting = true
    write(STDERR, this.#batch, (error, bytes) => {
      this.#isWriting = false
      if (error) return this.#retryLater()
      this.#batch = this.#batch.subarray(bytes)
      this.#writeBatch()
    })
  }

  #retryLater(): void {
    this.#isRetrying = true
    setTimeout(() => {
      this.#isRetrying = false
      this.#writeBatch()
    }, RETRY_MS).unref()
  }

  #takeLines(): Buffer {
    if (this.#dropped > 0)
      this.#lines.push(formatRecord('warn', 'log lines dropped', { dropped: this.#dropped }))
    const lines = Buffer.from(this.#lines.join(''))
    this.#lines = []
    this.#chars = 0
    this.#dropped = 0
    return lines
  }

  /** A batch that is being written is left to the thread that writes it, so that no line appears twice. */
  writeAtExit(): void {
    const batch = this.#isWriting ? Buffer.alloc(0) : this.#batch
    let rest = Buffer.concat([batch, this.#takeLines()])
    for (let retriesLeft = EXIT_RETRIES_MAX; rest.length > 0; ) {
      try {
        rest = rest.subarray(writeSync(STDERR, rest))
      } catch (error) {
        // A pipe that is not read gets one second. Other errors would not go away.
        if ((error as NodeJS.ErrnoException).code !== 'EAGAIN' || retriesLeft-- === 0) return
        Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, RETRY_MS)
      }
    }
  }
}

const stderr = new LogStream()
process.once('exit', () => stderr.writeAtExit())

/** Leaves out all other members: the error of a database driver can quote the row that caused it. */
function describeError(error: unknown, depth = 0): object {
  if (!(error instanceof Error)) return { message: String(error) }
  const { name: type, message, stack, cause } = error
  const { code } = error as { code?: unknown }
  return {
    type,
    message,
    stack,
    ...(code !== undefined && { code }),
    ...(cause !== undefined && depth < CAUSES_MAX && { cause: describeError(cause, depth + 1) }),
  }
}

/**
 * Writes the last lines before the process exits. If nothing reads standard error, the process is killed,
 * because its exit would wait for the write forever.
 */
export async function flushLog(log: Logger): Promise<void> {
  const timeout = setTimeout(() => process.kill(process.pid, 'SIGKILL'), FLUSH_TIMEOUT_MS)
  await new Promise<void>((resolve) => log.flush(() => resolve()))
  clearTimeout(timeout)
}
