// A command is a definition: its name, its arguments and flags, and its handler. Parsing, help, completion and usage
// errors are derived from it.
import { parseArgs } from 'node:util'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { nearest } from './suggest.ts'

export interface Option {
  readonly summary: string
  /** The placeholder of its value, e.g. `<slug>`; a boolean flag has none. */
  readonly value?: string
  readonly required?: true
}

export const groups = ['Workspace', 'Tunnels', 'Server', 'Admin', 'Other'] as const

export interface Command {
  /** The words that call it, e.g. `admin key create`. */
  readonly name: string
  /** Where `adit --help` lists it. */
  readonly group: (typeof groups)[number]
  /** One line, in the imperative. */
  readonly summary: string
  /** Paragraphs for its own help page, wrapped when printed; a line that starts with a space is kept. */
  readonly details?: string
  /** Names of its arguments, all required. */
  readonly arguments?: readonly string[]
  readonly options?: { readonly [name: string]: Option }
  /** Environment variables for its help page. */
  readonly environment?: Readonly<Record<string, { readonly summary: string; readonly fallback: string }>>
  readonly run: (input: never, io: Io) => Promise<void>
}

type Value<O extends Option> = O extends { value: string }
  ? O extends { required: true }
    ? string
    : string | undefined
  : boolean

export type Input<C extends Pick<Command, 'arguments' | 'options'>> = {
  [A in C['arguments'] extends readonly string[] ? C['arguments'][number] : never]: string
} & {
  -readonly [N in keyof C['options']]: C['options'][N] extends Option ? Value<C['options'][N]> : never
}

/** Checks the type of a handler against the arguments and flags that its command declares. */
export const command = <const C extends Omit<Command, 'run'>>(
  definition: C,
  run: (input: Input<C>, io: Io) => Promise<void>,
): Command => ({ ...definition, run })

export const commonOptions: { [name: string]: Option } = {
  json: { summary: 'print JSON: data on stdout, errors on stderr' },
  help: { summary: 'show this help' },
}

/** Parses the words after the command's name. Throws a UsageError that names the mistake. */
export function readInput(command: Command, words: string[]): Record<string, string | boolean | undefined> {
  const options: Record<string, Option> = { ...command.options, ...commonOptions }
  const fail = (what: string) => new UsageError(`${what} Run \`adit ${command.name} --help\` for usage.`)
  const { tokens } = parseArgs({
    args: words,
    options: Object.fromEntries(
      Object.entries(options).map(([name, { value }]) => [name, { type: value ? 'string' : 'boolean' }]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const input: Record<string, string | boolean | undefined> = Object.fromEntries(
    Object.entries(options).map(([name, { value }]) => [name, value ? undefined : false]),
  )
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    const { name, rawName, value, inlineValue } = token
    const option = Object.hasOwn(options, name) ? options[name] : undefined
    if (!option) throw fail(unknownFlag(rawName, Object.keys(options)))
    if (option.value === undefined) {
      if (value !== undefined) throw fail(`The flag ${rawName} takes no value.`)
      input[name] = true
      continue
    }
    if (value === undefined) throw fail(`The flag ${rawName} needs a value: ${rawName} ${option.value}`)
    // Most likely the next flag, after a forgotten value.
    if (!inlineValue && value.startsWith('-'))
      throw fail(`The flag ${rawName} needs a value; write ${rawName}=${value} if it starts with a dash.`)
    input[name] = value
  }
  for (const [name, option] of Object.entries(options))
    if (option.required && input[name] === undefined)
      throw fail(`Missing required flag --${name} ${option.value}.`)
  const names = command.arguments ?? []
  for (const [index, name] of names.entries()) {
    if (positionals[index] === undefined) throw fail(`Missing argument <${name}>.`)
    input[name] = positionals[index]
  }
  const extra = positionals[names.length]
  if (extra !== undefined) throw fail(`Unexpected argument "${extra}".`)
  return input
}

function unknownFlag(flag: string, known: string[]): string {
  const near = nearest(
    flag,
    known.map((name) => `--${name}`),
  )
  return `Unknown flag ${flag}.${near ? ` Did you mean ${near}?` : ''}`
}
