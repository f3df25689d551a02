// Maps the command line to a command and its outcome to an exit code. Called by bin/adit.js, which has
// checked the Node version.
import { type Command, readInput } from './cli/command.ts'
import { commands } from './cli/commands.ts'
import { CommandError, NotAuthenticated, UsageError } from './cli/errors.ts'
import { helpFor, helpForPrefix, helpOverview } from './cli/help.ts'
import { createIo, type Io } from './cli/io.ts'
import { plain, type Text } from './cli/style.ts'
import { nearest } from './cli/suggest.ts'
import { errorMessage, StartupError } from './lib/startup-error.ts'
import { unknownSettings } from './server/config/environment.ts'
import { version } from './server/config/server.ts'
import { ConfigError } from './server/config/setting.ts'
import { toFault } from './server/domain/fault.ts'

const EXIT = { done: 0, failed: 1, usage: 2, notAuthenticated: 4 } as const
/** They report unknown variables themselves; `adit completion` reads no configuration. */
const QUIET = new Set(['serve', 'edge', 'admin doctor', 'completion'])

export async function main(args: string[]): Promise<number> {
  const io = createIo(args.includes('--json'))
  try {
    // --json may stand anywhere: `adit --json serve` is the same as `adit serve --json`.
    await dispatch(
      args.filter((word) => word !== '--json'),
      io,
    )
    return EXIT.done
  } catch (error) {
    return reportError(error, io)
  }
}

async function dispatch(args: string[], io: Io): Promise<void> {
  const [first] = args
  if (first === '--version' || first === '-v') return io.data({ version }, version)
  const isHelp = first === undefined || first === 'help' || args.includes('--help') || args.includes('-h')
  const path = first === 'help' ? args.slice(1) : args
  const found = findCommand(path)
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
  if (prefix === '' && isHelp) return showHelp(helpOverview(commands), io)
  const members = commands.filter(({ name }) => prefix !== '' && name.startsWith(`${prefix} `))
  if (members.length === 0) throw unknownCommand(names, path)
  const help = helpForPrefix(members, prefix)
  if (isHelp) return showHelp(help, io)
  throw new UsageError(`\`adit ${prefix}\` needs a subcommand.\n\n${plain(help)}`)
}

function warnUnknownSettings(io: Io): void {
  const unknown = unknownSettings()
  if (unknown.length > 0) io.warn(`Unknown ADIT_ variables ignored: ${unknown.join(', ')}.`)
}

const showHelp = (help: Text, io: Io) => io.data({ help: plain(help) }, help)

function findCommand(args: string[]): Command | undefined {
  const matching = commands.filter(({ name }) => name.split(' ').every((word, index) => args[index] === word))
  // "profiles use" before "profiles".
  return matching.toSorted((a, b) => b.name.length - a.name.length)[0]
}

function unknownCommand(names: string[], args: string[]): UsageError {
  if (names.length === 0) return new UsageError(`Unknown flag ${args[0]}. Run \`adit --help\` for usage.`)
  const near = otherTunnelCommand(names) ?? nearestCommand(names)
  const advice = near ? `Did you mean \`adit ${near}\`?` : 'Run `adit --help` for a list of commands.'
  return new UsageError(`Unknown command "${names.join(' ')}". ${advice}`)
}

/** The commands of other tunnel clients, `http 3000` and `tcp 5432`. */
function otherTunnelCommand(names: string[]): string | undefined {
  if (names[0] === 'http') return ['tunnel', ...names.slice(1)].join(' ')
  return names[0] === 'tcp' ? ['tunnel', ...names].join(' ') : undefined
}

/** Corrects word by word, so that a mistake in a group's name is found whatever follows it. */
function nearestCommand(names: string[]): string | undefined {
  const corrected: string[] = []
  for (const name of names) {
    const prefix = corrected.map((word) => `${word} `).join('')
    const next = new Set(
      commands.flatMap((one) =>
        one.name.startsWith(prefix) ? (one.name.slice(prefix.length).split(' ')[0] ?? []) : [],
      ),
    )
    if (next.size === 0) break
    const word = next.has(name) ? name : nearest(name, [...next])
    if (word === undefined) return undefined
    corrected.push(word)
  }
  return corrected.join(' ')
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
  // Unlike a response, a terminal may show the cause: the user runs the program.
  io.fail(fault.code, fault.cause ? errorMessage(fault.cause) : fault.message)
  const isWrongInput = fault.code === 'invalid_request' && fault.details.length > 0
  return isWrongInput ? EXIT.usage : EXIT.failed
}
