// A command is a definition: what it is called, what it takes, what it does. Parsing, help and the errors of wrong
// usage are made from it.
import { parseArgs } from 'node:util'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'

export interface Option {
  readonly summary: string
  /** The placeholder of its value, e.g. `<slug>`; a flag has none. */
  readonly value?: string
  readonly required?: true
}

export interface Command {
  /** The words that call it, e.g. `admin key create`. */
  readonly name: string
  readonly summary: string
  /** More for its own help page: what it prints, what to know. */
  readonly details?: string
  /** Names of its arguments, all required. */
  readonly arguments?: readonly string[]
  readonly options?: { readonly [name: string]: Option }
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

/** Checks a definition's handler against what it declares to take. */
export const command = <const C extends Omit<Command, 'run'>>(
  definition: C,
  run: (input: Input<C>, io: Io) => Promise<void>,
): Command => ({ ...definition, run })

export const commonOptions: { [name: string]: Option } = {
  json: { summary: 'print JSON: data on standard output, errors on standard error' },
  help: { summary: 'show this help' },
}

/** The words after the command's name → its input. Throws UsageError with what is wrong. */
export function readInput(command: Command, words: string[]): Record<string, string | boolean | undefined> {
  try {
    return parseInput(command, words)
  } catch (error) {
    // The first sentence says what is wrong; what may follow is advice for programmers.
    const [what] = (error as Error).message.replaceAll("'", '"').split(/\. |\.$/)
    throw new UsageError(`${what}. "adit ${command.name} --help" explains.`)
  }
}

function parseInput(command: Command, words: string[]): Record<string, string | boolean | undefined> {
  const options = { ...command.options, ...commonOptions }
  const declared = Object.fromEntries(
    Object.entries(options).map(([name, option]) => [
      name,
      { type: option.value ? 'string' : 'boolean' } as const,
    ]),
  )
  const names = command.arguments ?? []
  const parsed = parseArgs({ args: words, options: declared, allowPositionals: true, strict: true })
  const input: Record<string, string | boolean | undefined> = {}
  for (const [name, option] of Object.entries(options)) {
    const value = parsed.values[name] as string | boolean | undefined
    if (option.required && value === undefined) throw new Error(`--${name} ${option.value} is missing.`)
    input[name] = option.value ? value : value === true
  }
  for (const [index, name] of names.entries()) {
    const value = parsed.positionals[index]
    if (value === undefined) throw new Error(`<${name}> is missing.`)
    input[name] = value
  }
  const extra = parsed.positionals[names.length]
  if (extra !== undefined) throw new Error(`"${extra}" is one argument too many.`)
  return input
}
