// Distributing the tables over a Citus cluster.
import { distribute as placeTables } from '../../store/engine/postgres/citus.ts'
import { DistributeError } from '../../store/engine/postgres/citus-catalog.ts'
import type { DatabaseTarget } from '../../store/engine/store.ts'

export { DistributeError }

export async function distribute(database: DatabaseTarget, onProgress: (step: string) => void) {
  if (database.engine === 'sqlite')
    throw new DistributeError(
      'SQLite cannot be distributed. Set ADIT_DATABASE_URL to a PostgreSQL server with the citus extension.',
    )
  return placeTables(database.url, onProgress)
}
