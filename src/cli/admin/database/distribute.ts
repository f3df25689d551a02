import { readConfig } from '../../../server/config/server.ts'
import { recordDatabaseAction } from '../../../server/domain/audit/operator-actions.ts'
import { DistributeError, distribute as placeTables } from '../../../server/domain/maintenance/distribute.ts'
import { CommandError } from '../../errors.ts'
import type { Io } from '../../io.ts'
import { openAndAct } from '../with-services.ts'

const PLACEMENTS = {
  distributed: 'sharded by workspace',
  local: 'coordinator',
} as const

export async function distribute(io: Io): Promise<void> {
  const { database } = readConfig()
  try {
    // Migrates the schema first, so that new tables are placed too.
    if (database.engine === 'postgres')
      await openAndAct((services, actor) => recordDatabaseAction(services, actor, 'database.distributed'))
    const placed = await placeTables(database, (step) => io.progress(step))
    io.progress('')
    await io.list([placed], {
      columns: {
        TABLE: (one) => one.table,
        PLACEMENT: (one) => PLACEMENTS[one.placement],
        CHANGED: (one) => (one.changed ? 'yes' : 'no'),
      },
      empty: 'No tables.',
    })
  } catch (error) {
    io.progress('')
    if (error instanceof DistributeError) throw new CommandError('distribute', error.message)
    throw error
  }
}
