// A command is a definition: its name, its arguments and flags, and its handler. Parsing, help, completion
// and usage errors are derived from it.
import { parseArgs } from 'node:util'
import { UsageError } from './errors.ts'
import type { Io } from './io.ts'
import { nearest } from './suggest.ts'

export interface Option {
  readonly summary: string
  /** The placeholder of its value, e.g. `<slug>`; a boolean flag has none. */
  readonly value?: string
  readonly required?: true
  /** May be given several times. */
  readonly repeatable?: true
  /** Another name that works too, as in other programs; help and completion do not show it. */
  readonly alias?: string
  /** Only its error message says that the command has no such flag; neither help nor completion has it. */
  readonly hidden?: true
}

export const groups = ['Workspace', 'Tunnels', 'Server', 'Admin', 'Other'] as const

export interface Command {
  /** The words that call it, e.g. `admin key create`. */
  readonly name: string
  /** Its section in `adit --help`. */
  readonly group: (typeof groups)[number]
  /** One line, in the imperative. */
  readonly summary: string
  /** Paragraphs for its own help page, wrapped when printed; a line that starts with a space is kept. */
  readonly details?: string
  /** Names of its arguments, all required. */
  readonly arguments?: readonly string[]
  /** Name of a last argument that may be left out. */
  readonly optionalArgument?: string
  /** Name of last arguments, of which there may be any number. */
  readonly restArguments?: string
  readonly options?: Options
  /** Flags of other programs that are something else here, with what to do instead. */
  readonly otherFlags?: Readonly<Record<string, string>>
  /** Environment variables for its help page. */
  readonly environment?: Readonly<Record<string, { readonly summary: string; readonly fallback: string }>>
  readonly run: (input: never, io: Io) => Promise<void>
}

type Value<O extends Option> = O extends { value: string }
  ? O extends { repeatable: true }
    ? string[]
    : O extends { required: true }
      ? string
      : string | undefined
  : boolean

type Options = Readonly<Record<string, Option>>

type Input<
  Arguments extends readonly string[],
  Optional extends string,
  Rest extends string,
  O extends Options,
> = {
  [A in Arguments[number]]: string
} & { [A in Optional]: string | undefined } & { [A in Rest]: string[] } & {
  -readonly [N in keyof O]: Value<O[N]>
}

type Definition = Omit<Command, 'group'>

/** Checks the type of the handler against the arguments and flags that its command declares. */
export const command = <
  const Arguments extends readonly string[] = [],
  const Optional extends string = never,
  const Rest extends string = never,
  const O extends Options = Record<never, Option>,
>(
  definition: Omit<Definition, 'run'> & {
    readonly arguments?: Arguments
    readonly optionalArgument?: Optional
    readonly restArguments?: Rest
    readonly options?: O
    readonly run: (input: Input<Arguments, Optional, Rest, O>, io: Io) => Promise<void>
  },
): Definition => definition

export const inGroup = (group: Command['group'], definitions: readonly Definition[]): readonly Command[] =>
  definitions.map((definition) => ({ ...definition, group }))

export const commonOptions: Options = {
  json: { summary: 'print JSON: data on stdout, errors on stderr' },
  help: { summary: 'show this help' },
}

export const visibleOptions = ({ options }: Command): [name: string, option: Option][] =>
  Object.entries({ ...options, ...commonOptions }).filter(([, { hidden }]) => !hidden)

type Values = Record<string, string | string[] | boolean | undefined>

/** Parses the words after the command's name. Throws a UsageError that names the mistake. */
export function readInput(command: Command, args: string[]): Values {
  const options: Record<string, Option> = { ...command.options, ...commonOptions }
  const { arguments: names = [], optionalArgument, restArguments } = command
  try {
    const { values, positionals } = readFlags(options, args, command.otherFlags)
    for (const [name, { required, value }] of Object.entries(options))
      if (required && values[name] === undefined) throw new Error(`Missing required flag --${name} ${value}.`)
    for (const [index, name] of names.entries()) {
      if (positionals[index] === undefined) throw new Error(`Missing argument <${name}>.`)
      values[name] = positionals[index]
    }
    if (restArguments !== undefined) values[restArguments] = positionals.splice(names.length)
    const [optional, ...others] = positionals.slice(names.length)
    if (optionalArgument !== undefined) values[optionalArgument] = optional
    const extra = optionalArgument === undefined ? optional : others[0]
    if (extra !== undefined) throw new Error(`Unexpected argument "${extra}".`)
    return values
  } catch (error) {
    throw new UsageError(`${(error as Error).message} Run \`adit ${command.name} --help\` for usage.`)
  }
}

/** Does not use `strict`: the errors of `parseArgs` are written for programmers. */
function readFlags(options: Record<string, Option>, args: string[], otherFlags: Command['otherFlags'] = {}) {
  const names = new Map(
    Object.entries(options).flatMap(([name, { alias }]) => [name, alias ?? name].map((each) => [each, name])),
  )
  const { tokens } = parseArgs({
    args,
    options: Object.fromEntries(
      Array.from(names, ([each, name]) => [each, { type: options[name]?.value ? 'string' : 'boolean' }]),
    ),
    allowPositionals: true,
    strict: false,
    tokens: true,
  })
  const values: Values = {}
  for (const [name, { value, repeatable }] of Object.entries(options))
    values[name] = repeatable ? [] : value ? undefined : false
  const positionals: string[] = []
  for (const token of tokens) {
    if (token.kind === 'positional') positionals.push(token.value)
    if (token.kind !== 'option') continue
    if (Object.hasOwn(otherFlags, token.name))
      throw new Error(`Unknown flag ${token.rawName}. ${otherFlags[token.name]}`)
    const name = names.get(token.name) ?? ''
    const option = options[name]
    if (!option) throw new Error(unknownFlag(token.rawName, Object.keys(options)))
    const value = readValue(option, token)
    const before = values[name]
    values[name] = Array.isArray(before) ? [...before, String(value)] : value
  }
  return { values, positionals }
}

function readValue(
  option: Option,
  {
    rawName,
    value,
    inlineValue,
  }: { rawName: string; value?: string | undefined; inlineValue?: boolean | undefined },
): string | true {
  if (option.value === undefined) {
    if (value !== undefined) throw new Error(`The flag ${rawName} takes no value.`)
    return true
  }
  if (value === undefined) throw new Error(`The flag ${rawName} needs a value: ${rawName} ${option.value}.`)
  // Most likely the next flag, because the value is missing.
  if (!inlineValue && value.startsWith('-'))
    throw new Error(`The flag ${rawName} needs a value; write ${rawName}=${value} if it starts with a dash.`)
  return value
}

function unknownFlag(flag: string, known: string[]): string {
  const near = nearest(
    flag,
    known.map((name) => `--${name}`),
  )
  return `Unknown flag ${flag}.${near ? ` Did you mean ${near}?` : ''}`
}
