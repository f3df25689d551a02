// The one way out for all commands: data to standard output, talk to standard error, JSON where it was asked for.
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { toSerializable } from '../client/exact-json.ts'
import { isDumbTerminal } from '../config.ts'
import { CommandError } from './errors.ts'
import { type Columns, jsonTexts, tableTexts } from './table.ts'

const LINE_CHARS_MAX = 10_000

export interface Io {
  readonly json: boolean
  /** The command's result: as JSON, or as the text that people read. */
  data(value: unknown, text: string): void
  /** The command's result where that is a list of any length. */
  list<T>(slices: AsyncIterable<T[]> | Iterable<T[]>, columns: Columns<T>): Promise<void>
  /** A word to the person at the terminal; not said in JSON mode. */
  info(text: string): void
  /** Replaces the line said before, on a terminal; elsewhere, and in JSON mode, nothing. */
  progress(text: string): void
  /** How many columns the data may take, and whether blocks can be drawn in them. */
  readonly terminal: { columns: number; blocks: boolean }
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
    data: (value, text) =>
      stdout.write(`${json ? JSON.stringify(toSerializable(value)) : stripControl(text)}\n`),
    async list(slices, columns) {
      const texts = json ? jsonTexts(slices) : tableTexts(slices, columns)
      for await (const text of texts)
        if (!stdout.write(json ? text : stripControl(text))) await once(stdout, 'drain')
    },
    info: (text) => json || stderr.write(`${stripControl(text)}\n`),
    terminal: { columns: Math.max(40, stdout.columns ?? 80), blocks: !isDumbTerminal() },
    interactive: Boolean(process.stdin.isTTY && stderr.isTTY),
    ask: askAtTerminal,
    readLine: readPipedLine,
    progress: (text) => overwrites && stderr.write(`\r\u001b[K${text}`),
    fail: (error, message) =>
      stderr.write(json ? `${JSON.stringify({ error, message })}\n` : `adit: ${stripControl(message)}\n`),
  }
}

async function askAtTerminal(question: string, how?: { hidden: true }): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({
    input: process.stdin,
    output: how?.hidden ? silent : process.stderr,
    terminal: true,
  })
  try {
    // Given to it, so that it draws the question itself; what is hidden is drawn by nobody.
    if (how?.hidden) process.stderr.write(stripControl(question))
    const given = await lines.question(how?.hidden ? '' : stripControl(question))
    if (how?.hidden) process.stderr.write('\n')
    return given.trim()
  } catch {
    // Ctrl-C and Ctrl-D.
    process.stderr.write('\n')
    throw new CommandError('given_up', 'Given up.')
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

/** What a server sends must not move the cursor or reorder the line: such characters are shown as U+FFFD. */
const stripControl = (text: string) =>
  // biome-ignore lint/suspicious/noControlCharactersInRegex: they are what it is about
  text.replace(/[\u0000-\u0008\u000b-\u001f\u007f-\u009f\p{Bidi_Control}]/gu, '\ufffd')
