// Input and output of all commands: data on standard output, messages on standard error, JSON with --json.
import { once } from 'node:events'
import { Writable } from 'node:stream'
import { toSerializable } from '../client/exact-json.ts'
import { printableJson } from '../contract/text.ts'
import { isDumbTerminal } from '../server/config/environment.ts'
import { CommandError } from './errors.ts'
import { relativeTime } from './relative-time.ts'
import { joinLines, red, render, replaceControl, type Text, yellow } from './style.ts'
import { jsonTexts, type ListOptions, type Slices, tableLines } from './table.ts'

const LINE_CHARS_MAX = 10_000
const COLUMNS_DEFAULT = 80
const COLUMNS_MIN = 40

export interface Io {
  readonly json: boolean
  /** The command's result: as JSON, or as text for a terminal. */
  data(value: unknown, text: Text): void
  /** The command's result if it is a list, of any length. */
  list<T>(slices: Slices<T>, options: ListOptions<T>): Promise<void>
  /** Text as it is, on standard output. Resolves when it was written. */
  write(text: string): Promise<void>
  /** A message to the user; omitted with --json. */
  info(text: Text): void
  /** A warning on stderr, also with --json. */
  warn(message: string): void
  /** Overwrites the previous progress message on a terminal; omitted elsewhere and with --json. */
  progress(text: string): void
  /** "3 minutes ago" on a terminal, the ISO timestamp elsewhere; `never` without one. */
  time(iso: string | null | undefined): string
  /** How many columns a chart may use, and whether block characters can be drawn. */
  readonly terminal: {
    columns: number
    blocks: boolean
    /** Whether lines can stay in place while others scroll. */
    canPin: boolean
  }
  /** A message as it is written to standard error. */
  format(text: Text): string
  /** Whether input and output are a terminal, so that a user can be prompted. */
  readonly interactive: boolean
  /** Prompts the user; hidden input is not echoed. */
  ask(question: string, how?: { hidden: true }): Promise<string>
  /** Asks a yes/no question; no is the default. */
  confirm(question: string): Promise<boolean>
  /** The first line of standard input. */
  readLine(): Promise<string>
  fail(code: string, message: string): void
}

export function createIo(json: boolean): Io {
  const { stdout, stderr } = process
  // A reader that closes the pipe early (`| head`) is not an error; a full disk is.
  stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (!isTerminalGone(error)) process.exit(error.code === 'EPIPE' ? 0 : 1)
  })
  stderr.on('error', (error) => {
    if (!isTerminalGone(error)) throw error
  })
  const overwrites = stderr.isTTY && !json && !isDumbTerminal()
  const columns = Math.max(COLUMNS_MIN, stdout.columns || COLUMNS_DEFAULT)
  return {
    json,
    data: (value, text) =>
      stdout.write(json ? `${printableJson(toSerializable(value))}\n` : `${render(text, stdout)}\n`),
    async list(slices, options) {
      for await (const text of json ? jsonTexts(slices) : tableTexts(slices, options))
        if (!stdout.write(text)) await once(stdout, 'drain')
    },
    write: (text) => new Promise((resolve) => stdout.write(text, () => resolve())),
    info: (text) => json || stderr.write(`${render(text, stderr)}\n`),
    warn: (message) =>
      stderr.write(
        json
          ? `${printableJson({ warning: message })}\n`
          : `${render([yellow('adit:'), ' ', message], stderr)}\n`,
      ),
    time: (iso) => {
      if (!iso) return 'never'
      return stdout.isTTY && !json ? relativeTime(iso, Date.now()) : iso
    },
    terminal: { columns, blocks: !isDumbTerminal(), canPin: Boolean(overwrites && stdout.isTTY) },
    format: (text) => render(text, stderr),
    interactive: Boolean(process.stdin.isTTY && stderr.isTTY) && !json,
    ask: askAtTerminal,
    confirm: async (question) => /^y(es)?$/i.test(await askAtTerminal(`${question} [y/N] `)),
    readLine: readPipedLine,
    progress: (text) => overwrites && stderr.write(`\r\u001b[K${text}`),
    fail: (error, message) =>
      stderr.write(
        json ? `${printableJson({ error, message })}\n` : `${render([red('adit:'), ' ', message], stderr)}\n`,
      ),
  }

  async function* tableTexts<T>(slices: Slices<T>, options: ListOptions<T>): AsyncGenerator<string> {
    // A pipe gets whole cells, however wide: scripts read them.
    const width = stdout.isTTY ? columns : undefined
    for await (const lines of tableLines(slices, options, width)) {
      const text = render(joinLines(lines), stdout)
      yield `${text.replace(/ +$/gm, '')}\n`
    }
  }
}

/** A tunnel whose terminal was closed gets SIGHUP, and still completes its requests. */
const isTerminalGone = ({ code }: NodeJS.ErrnoException) => code === 'EIO'

async function askAtTerminal(question: string, how?: { hidden: true }): Promise<string> {
  const { createInterface } = await import('node:readline/promises')
  const silent = new Writable({ write: (_chunk, _encoding, done) => done() })
  const lines = createInterface({
    input: process.stdin,
    output: how?.hidden ? silent : process.stderr,
    terminal: true,
  })
  try {
    // readline redraws its own prompt; hidden input has a silent output, so its prompt is written here.
    if (how?.hidden) process.stderr.write(replaceControl(question))
    const input = await lines.question(how?.hidden ? '' : replaceControl(question))
    if (how?.hidden) process.stderr.write('\n')
    return input.trim()
  } catch {
    // Ctrl-C and Ctrl-D.
    process.stderr.write('\n')
    throw new CommandError('canceled', 'Canceled.')
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
