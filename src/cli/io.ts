// The one way out for all commands: data to standard output, talk to standard error, JSON where it was asked for.
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { isDumbTerminal } from '../config.ts'
import { UsageError } from './errors.ts'

const LINE_CHARS_MAX = 10_000

export interface Io {
  readonly json: boolean
  /** The command's result: as JSON, or as the text that people read. */
  data(value: unknown, text: string): void
  /** A word to the person at the terminal; not said in JSON mode. */
  say(text: string): void
  /** Replaces the line said before, on a terminal; elsewhere, and in JSON mode, nothing. */
  progress(text: string): void
  /** How many columns the data may take, and whether blocks can be drawn in them. */
  readonly paper: { columns: number; blocks: boolean }
  /** Whether somebody is there to answer a question. */
  readonly interactive: boolean
  /** What the person at the terminal answers; hidden while it is typed, if it is a secret. */
  ask(question: string, how?: { hidden: true }): Promise<string>
  /** What was piped in, up to the first line's end. */
  readLine(): Promise<string>
  fail(code: string, message: string): void
}

export function createIo(json: boolean): Io {
  const { stdout, stderr } = process
  // Whoever read the output may stop before its end (`| head`): that is no failure, a full disk is.
  stdout.on('error', (error: NodeJS.ErrnoException) => process.exit(error.code === 'EPIPE' ? 0 : 1))
  const overwrites = stderr.isTTY && !json && !isDumbTerminal()
  return {
    json,
    data: (value, text) => stdout.write(`${json ? JSON.stringify(value) : text}\n`),
    say: (text) => json || stderr.write(`${text}\n`),
    paper: { columns: Math.max(40, stdout.columns ?? 80), blocks: !isDumbTerminal() },
    interactive: Boolean(process.stdin.isTTY && stderr.isTTY),
    ask: askAtTerminal,
    readLine: readPipedLine,
    progress: (text) => overwrites && stderr.write(`\r\u001b[K${text}`),
    fail: (error, message) =>
      stderr.write(json ? `${JSON.stringify({ error, message })}\n` : `adit: ${message}\n`),
  }
}

async function askAtTerminal(question: string, how?: { hidden: true }): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  process.stderr.write(question)
  const lines = createInterface({
    input: process.stdin,
    output: how?.hidden ? silent : process.stderr,
    terminal: true,
  })
  try {
    const answered = lines.question('')
    // Ctrl-C and Ctrl-D are answers too.
    const given = await Promise.race([answered, once(lines, 'close').then(() => undefined)])
    if (how?.hidden || given === undefined) process.stderr.write('\n')
    if (given === undefined) throw new UsageError('Given up.')
    return given.trim()
  } finally {
    lines.close()
  }
}

async function readPipedLine(): Promise<string> {
  let text = ''
  for await (const chunk of process.stdin) {
    text += chunk
    if (text.includes('\n') || text.length > LINE_CHARS_MAX) break
  }
  return (text.split('\n', 1)[0] as string).trim()
}

/** Columns wide enough for their widest cell. */
export function table(head: string[], rows: string[][]): string {
  if (rows.length === 0) return '(none)'
  const widths = head.map((title, column) =>
    Math.max(title.length, ...rows.map((row) => row[column]?.length ?? 0)),
  )
  const line = (cells: string[]) =>
    cells
      .map((cell, column) => cell.padEnd(widths[column] ?? 0))
      .join('  ')
      .trimEnd()
  return [line(head), ...rows.map(line)].join('\n')
}
