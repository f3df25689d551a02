// The one way out for all commands: data to standard output, talk to standard error, JSON where it was asked for.
import { isDumbTerminal } from '../config.ts'

export interface Io {
  readonly json: boolean
  /** The command's result: as JSON, or as the text that people read. */
  data(value: unknown, text: string): void
  /** A word to the person at the terminal; not said in JSON mode. */
  say(text: string): void
  /** Replaces the line said before, on a terminal; elsewhere, and in JSON mode, nothing. */
  progress(text: string): void
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
    progress: (text) => overwrites && stderr.write(`\r\u001b[K${text}`),
    fail: (error, message) =>
      stderr.write(json ? `${JSON.stringify({ error, message })}\n` : `adit: ${message}\n`),
  }
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
