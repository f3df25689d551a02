import { readConfig } from '../../config.ts'
import { DistributeError, distribute as placeTables } from '../../domain/distribute.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { table } from '../table.ts'
import { withServices } from './with-services.ts'

const WORDS = {
  distributed: 'spread over the machines by workspace',
  reference: 'whole on every machine',
} as const

export async function distribute(io: Io): Promise<void> {
  const { database } = readConfig()
  try {
    // Brings the schema up to date first, so that a new table is taken care of as well.
    if (database.engine === 'postgres') await withServices(io, async () => {})
    const placed = await placeTables(database, (name) => io.progress(`placing ${name}`))
    io.progress('')
    const rows = placed.map((one) => [one.table, WORDS[one.placement], one.changed ? 'now' : 'before'])
    io.data(placed, table(['TABLE', 'LIES', 'SINCE'], rows))
  } catch (error) {
    io.progress('')
    if (error instanceof DistributeError) throw new CommandError('distribute', error.message)
    throw error
  }
}
