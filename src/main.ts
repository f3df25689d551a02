// argv → the command it names → an exit code. Called by bin/adit.js, which has checked the Node version.

import { type Command, readInput } from './cli/command.ts'
import { commands } from './cli/commands.ts'
import { CommandError, NotAuthenticated, UsageError } from './cli/errors.ts'
import { helpFor, helpOverview } from './cli/help.ts'
import { createIo, type Io } from './cli/io.ts'
import { ConfigError, version } from './config.ts'
import { faultOf } from './domain/fault.ts'
import { errorMessage, StartupError } from './startup-error.ts'

const EXIT = { done: 0, failed: 1, usage: 2, notAuthenticated: 4 } as const

export async function main(words: string[]): Promise<number> {
  const io = createIo(words.includes('--json'))
  try {
    // Wherever it stands: `adit --json serve` is as good as `adit serve --json`.
    await dispatch(
      words.filter((word) => word !== '--json'),
      io,
    )
    return EXIT.done
  } catch (error) {
    return explain(error, io)
  }
}

async function dispatch(words: string[], io: Io): Promise<void> {
  const [first, ...others] = words
  if (first === '--version') return io.data({ version }, version)
  const asked = first === 'help' ? others : words
  const helpWanted =
    first === undefined || first === 'help' || words.includes('--help') || words.includes('-h')
  const found = findCommand(asked)
  if (found && helpWanted) return io.data({ help: helpFor(found) }, helpFor(found))
  if (found) return found.run(readInput(found, asked.slice(found.name.split(' ').length)) as never, io)

  const named = asked.filter((word) => !word.startsWith('-')).join(' ')
  const isGroup = named !== '' && commands.some(({ name }) => name.startsWith(`${named} `))
  const help = helpOverview(commands, isGroup ? named : '')
  if (helpWanted) return io.data({ help }, help)
  if (isGroup) throw new UsageError(`"adit ${named}" needs one of its subcommands.\n\n${help}`)
  throw new UsageError(`There is no command "${named}". "adit --help" lists them.`)
}

function findCommand(words: string[]): Command | undefined {
  const fitting = commands.filter(({ name }) => name.split(' ').every((word, index) => words[index] === word))
  // "profiles use" before "profiles".
  return fitting.toSorted((a, b) => b.name.length - a.name.length)[0]
}

function explain(error: unknown, io: Io): number {
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
  const fault = faultOf(error)
  // At a terminal the cause may be told: whoever is there runs the thing.
  io.fail(fault.code, fault.cause ? errorMessage(fault.cause) : fault.message)
  const wrongInput = fault.code === 'invalid_request' && fault.details.length > 0
  return wrongInput ? EXIT.usage : EXIT.failed
}
