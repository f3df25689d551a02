// argv → the command it names → an exit code. Called by bin/adit.js, which has checked the Node version.

import { type Command, readInput, UsageError } from './cli/command.ts'
import { commands } from './cli/commands.ts'
import { helpFor, helpOverview } from './cli/help.ts'
import { createIo, type Io } from './cli/io.ts'
import { ConfigError } from './config.ts'
import { type Fault, faultOf } from './domain/fault.ts'

const EXIT = { done: 0, failed: 1, usage: 2, unauthenticated: 4 } as const

export async function main(words: string[]): Promise<number> {
  const io = createIo(words.includes('--json'))
  try {
    await dispatch(words, io)
    return EXIT.done
  } catch (error) {
    return explain(error, io)
  }
}

async function dispatch(words: string[], io: Io): Promise<void> {
  const [first, ...others] = words
  const asked = first === 'help' ? others : words
  const helpWanted =
    first === undefined || first === 'help' || words.includes('--help') || words.includes('-h')
  const found = findCommand(asked)
  if (found && helpWanted) return io.data({ help: helpFor(found) }, helpFor(found))
  if (found) return found.run(readInput(found, asked.slice(found.name.split(' ').length)) as never, io)

  const group = groupOf(asked)
  if (!helpWanted && group === undefined) throw new UsageError(`There is no command "${asked.join(' ')}".`)
  const help = helpOverview(commands, group)
  if (!helpWanted) throw new UsageError(`"${group}" wants one more word.\n\n${help}`)
  io.data({ help }, help)
}

function findCommand(words: string[]): Command | undefined {
  return commands.find(({ name }) => name.split(' ').every((word, index) => words[index] === word))
}

/** The leading words that several commands begin with, such as `admin key`. */
function groupOf(words: string[]): string | undefined {
  const leading = words.filter((word) => !word.startsWith('-'))
  const group = leading.join(' ')
  return leading.length > 0 && commands.some(({ name }) => name.startsWith(`${group} `)) ? group : undefined
}

function explain(error: unknown, io: Io): number {
  if (error instanceof UsageError) {
    io.fail(
      'usage',
      `${error.message}${error.message.includes('\n') ? '' : ' "adit --help" lists the commands.'}`,
    )
    return EXIT.usage
  }
  if (error instanceof ConfigError) {
    io.fail('configuration', error.message)
    return EXIT.usage
  }
  const fault = faultOf(error)
  io.fail(fault.code, wordsFor(fault))
  if (fault.code === 'unauthorized') return EXIT.unauthenticated
  return fault.code === 'invalid_request' ? EXIT.usage : EXIT.failed
}

/** At a terminal the cause may be told: whoever is there runs the thing. */
function wordsFor(fault: Fault): string {
  const cause = fault.cause as (Error & { code?: string; address?: string; port?: number }) | undefined
  if (cause?.code === 'EADDRINUSE')
    return `Another program listens on ${cause.address}:${cause.port}. Stop it, or set ADIT_PORT to a free port.`
  if (cause?.code === 'EACCES' && cause.port)
    return `This user may not listen on port ${cause.port}. Set ADIT_PORT.`
  if (fault.code === 'unavailable')
    return `The database cannot be used: ${cause?.message || cause?.code}. Check ADIT_DATABASE_URL.`
  return cause?.message ?? fault.message
}
