// Maps the command line to a command and its outcome to an exit code.
import { errorMessage, StartupError } from '../lib/startup-error.ts'
import { unknownSettings } from '../server/config/environment.ts'
import { version } from '../server/config/server.ts'
import { ConfigError } from '../server/config/setting.ts'
import { type Fault, toFault } from '../server/domain/fault.ts'
import { type Command, readInput } from './command.ts'
import { CommandError, NotAuthenticated, UsageError } from './errors.ts'
import { helpFor, helpForPrefix, helpOverview } from './help.ts'
import { createIo, type Io } from './io.ts'
import { plain, type Text } from './style.ts'
import { nearest } from './suggest.ts'

const EXIT = { done: 0, failed: 1, usage: 2, notAuthenticated: 4 } as const
/** Commands that report unknown variables themselves, or (`adit completion`) read no configuration. */
const QUIET = new Set(['serve', 'edge', 'admin doctor', 'completion'])

interface Program {
  /** What it is, in one line. */
  readonly title: string
  readonly commands: readonly Command[]
  /** Explains why this program does not have a command. */
  readonly whyMissing?: (firstWord: string) => string | undefined
}

export async function run(args: string[], program: Program): Promise<number> {
  const io = createIo(args.includes('--json'))
  try {
    // --json may stand anywhere: `adit --json serve` is the same as `adit serve --json`.
    await dispatch(
      program,
      args.filter((word) => word !== '--json'),
      io,
    )
    return EXIT.done
  } catch (error) {
    return reportError(error, io)
  }
}

async function dispatch(program: Program, args: string[], io: Io): Promise<void> {
  const { commands } = program
  const [first] = args
  if (first === '--version' || first === '-v' || first === 'version') return io.data({ version }, version)
  const isHelp = first === undefined || first === 'help' || args.includes('--help') || args.includes('-h')
  const path = toOwnCommand(first === 'help' ? args.slice(1) : args)
  const found = findCommand(commands, path)
  if (found && !isHelp) {
    const input = readInput(found, path.slice(found.name.split(' ').length))
    if (!QUIET.has(found.name)) warnUnknownSettings(io)
    try {
      return await found.run(input as never, io)
    } catch (error) {
      if (error instanceof ConfigError && QUIET.has(found.name)) warnUnknownSettings(io)
      throw error
    }
  }
  if (found) return showHelp(helpFor(found), io)

  const names = path.filter((word) => !word.startsWith('-'))
  const prefix = names.join(' ')
  if (prefix === '' && isHelp) return showHelp(helpOverview(program.title, commands), io)
  const members = commands.filter(({ name }) => prefix !== '' && name.startsWith(`${prefix} `))
  if (members.length === 0) throw unknownCommand(program, names, path)
  const help = helpForPrefix(members, prefix)
  if (isHelp) return showHelp(help, io)
  throw new UsageError(`\`adit ${prefix}\` needs a subcommand.\n\n${plain(help)}`)
}

function warnUnknownSettings(io: Io): void {
  const unknown = unknownSettings()
  if (unknown.length > 0) io.warn(`Unknown ADIT_ variables ignored: ${unknown.join(', ')}.`)
}

const showHelp = (help: Text, io: Io) => io.data({ help: plain(help) }, help)

function findCommand(commands: readonly Command[], args: string[]): Command | undefined {
  const matching = commands.filter(({ name }) => name.split(' ').every((word, index) => args[index] === word))
  // "profiles use" before "profiles".
  return matching.toSorted((a, b) => b.name.length - a.name.length)[0]
}

/** How other programs call a command. */
const OTHER_NAMES: ReadonlyMap<string, string> = new Map([
  ['status', 'workspace'],
  ['whoami', 'workspace'],
])

function unknownCommand({ commands, whyMissing }: Program, names: string[], args: string[]): UsageError {
  if (names.length === 0) return new UsageError(`Unknown flag ${args[0]}. Run \`adit --help\` for usage.`)
  const missing = whyMissing?.(names[0] as string)
  if (missing) return new UsageError(missing)
  const near = OTHER_NAMES.get(names[0] as string) ?? nearestCommand(commands, names)
  const advice = near ? `Did you mean \`adit ${near}\`?` : 'Run `adit --help` for a list of commands.'
  return new UsageError(`Unknown command "${names.join(' ')}". ${advice}`)
}

/** The commands of other tunnel clients work too: `http 3000`, `tunnel http 3000` and `tcp 5432`. */
function toOwnCommand(args: string[]): string[] {
  const [first, second] = args
  if (first === 'http') return ['tunnel', ...args.slice(1)]
  if (first === 'tcp') return ['tunnel', ...args]
  return first === 'tunnel' && second === 'http' ? ['tunnel', ...args.slice(2)] : args
}

/** Corrects word by word, so that a mistake in a group's name is found whatever follows it. */
function nearestCommand(commands: readonly Command[], names: string[]): string | undefined {
  const corrected: string[] = []
  for (const name of names) {
    const prefix = corrected.map((word) => `${word} `).join('')
    const next = new Set(
      commands.flatMap((command) =>
        command.name.startsWith(prefix) ? (command.name.slice(prefix.length).split(' ')[0] ?? []) : [],
      ),
    )
    if (next.size === 0) break
    const word = next.has(name) ? name : nearest(name, [...next])
    if (word === undefined) {
      // It may be an argument.
      const isCommand = commands.some((command) => command.name === corrected.join(' '))
      return isCommand ? [...corrected, ...names.slice(corrected.length)].join(' ') : undefined
    }
    corrected.push(word)
  }
  return [...corrected, ...names.slice(corrected.length)].join(' ')
}

function reportError(error: unknown, io: Io): number {
  if (error instanceof UsageError) {
    io.fail('usage', error.message)
    return EXIT.usage
  }
  if (error instanceof ConfigError) {
    io.fail('configuration', error.message)
    return EXIT.usage
  }
  if (error instanceof StartupError) {
    io.fail(error.what, error.message)
    return EXIT.failed
  }
  if (error instanceof CommandError) {
    io.fail(error.code, error.message)
    return EXIT.failed
  }
  if (error instanceof NotAuthenticated) {
    io.fail('unauthorized', error.message)
    return EXIT.notAuthenticated
  }
  const fault = toFault(error)
  io.fail(fault.code, describeFault(fault))
  const isWrongInput = fault.code === 'invalid_request' && fault.details.length > 0
  return isWrongInput ? EXIT.usage : EXIT.failed
}

/** Unlike a response, a terminal may show the cause: the user runs the program. */
function describeFault({ code, message, cause }: Fault): string {
  if (!cause) return message
  const reason = errorMessage(cause)
  if (code !== 'unavailable') return reason
  return `${message} The cause: ${reason.replace(/\.$/, '')}. \`adit admin doctor\` checks the database.`
}
