// Spreading the tables over several machines.
import { CannotDistribute, distribute as placeTables } from '../store/citus.ts'
import type { Target } from '../store/store.ts'

export { CannotDistribute }

export async function distribute(database: Target, onTable: (table: string) => void) {
  if (database.engine === 'sqlite')
    throw new CannotDistribute(
      'SQLite lives on one machine: set ADIT_DATABASE_URL to a PostgreSQL with the citus extension.',
    )
  return placeTables(database.url, onTable)
}
