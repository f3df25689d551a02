// Admin commands act on the database directly and need no running server.
import { existsSync } from 'node:fs'
import { createLog } from '../../lib/log.ts'
import { type Config, readConfig } from '../../server/config/server.ts'
import type { OperatorActor, Services } from '../../server/domain/context.ts'
import { operatorActor } from '../../server/operator.ts'
import { openServices } from '../../server/services.ts'
import { CommandError, UsageError } from '../errors.ts'
import type { Io } from '../io.ts'
import { yellow } from '../style.ts'

const DATABASE_TIMEOUT_MS = 5_000

/** Opens the database for the operator and closes it again. Does not create one: the path may be mistyped. */
export async function withServices<T>(
  act: (services: Services, actor: OperatorActor) => Promise<T>,
): Promise<T> {
  requireFile(
    readConfig().database,
    'Check ADIT_DATABASE_URL; `adit serve` or `adit admin migrate` creates one.',
  )
  return openAndAct(act)
}

/** SQLite would create the file. */
export function requireFile(database: Config['database'], remedy: string): void {
  if (database.engine === 'sqlite' && !existsSync(database.path))
    throw new CommandError('database', `No database at ${database.path}. ${remedy}`)
}

/** Like withServices, but creates the database if there is none. */
export async function openAndAct<T>(
  act: (services: Services, actor: OperatorActor) => Promise<T>,
): Promise<T> {
  const services = await openServices(readConfig(), createLog('silent'), DATABASE_TIMEOUT_MS)
  try {
    return await act(services, operatorActor())
  } finally {
    await services.store.close()
  }
}

/** Warns of a consequence and asks; without a terminal, --yes is required. */
export async function confirm(io: Io, consequence: string, yes: boolean): Promise<void> {
  if (yes) return
  if (!io.interactive) throw new UsageError(`${consequence} Confirm with --yes.`)
  io.info([yellow('Warning:'), ` ${consequence}`])
  if (!(await io.confirm('Continue?'))) throw new CommandError('canceled', 'Canceled. Nothing was changed.')
}
