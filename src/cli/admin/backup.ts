import { existsSync } from 'node:fs'
import { resolve } from 'node:path'
import { readConfig } from '../../config.ts'
import { BackupError, backUp } from '../../domain/backup.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'

export async function backup(given: string, io: Io): Promise<void> {
  const { database, secret } = readConfig()
  const file = resolve(given)
  const { signal, done } = untilInterrupted()
  try {
    const made = await backUp(database, file, {
      clock: Date.now,
      signal,
      onProgress: (percent) => io.progress(`${percent} % copied`),
      onCheck: () => io.progress('checking the copy'),
    })
    io.progress('')
    io.data({ file, ...made }, `${file} holds everything that was committed by ${made.asOf}.`)
  } catch (error) {
    io.progress('')
    throw explain(error, signal)
  } finally {
    done()
  }
  const secretFile = database.engine === 'sqlite' ? `${database.path}.secret` : ''
  if (secret === undefined && existsSync(secretFile))
    io.info(
      `Except for ${secretFile}, which second factors are encrypted with: keep a copy of that elsewhere.`,
    )
}

/** Ctrl-C ends the copy where it is, and what was copied is removed. */
function untilInterrupted() {
  const controller = new AbortController()
  const abort = () => controller.abort()
  const signals = ['SIGINT', 'SIGTERM'] as const
  for (const name of signals) process.on(name, abort)
  const done = () => {
    for (const name of signals) process.off(name, abort)
  }
  return { signal: controller.signal, done }
}

function explain(error: unknown, signal: AbortSignal): CommandError {
  if (signal.aborted) return new CommandError('given_up', 'Given up. Nothing is left behind.')
  const { message } = error as Error
  return new CommandError(
    'backup',
    error instanceof BackupError ? message : `No backup was made: ${message}.`,
  )
}
