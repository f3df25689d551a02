// Database backups.
import { BackupError, type BackupOptions, backUpSqlite } from '../store/backup.ts'
import type { Target } from '../store/store.ts'
import { isoOf } from './timestamps.ts'

export { BackupError }

/** SQLite only. Does not migrate the database: a backup before an upgrade must keep the old schema. */
export async function backUp(database: Target, file: string, options: BackupOptions) {
  if (database.engine === 'postgres')
    throw new BackupError(
      'Back up PostgreSQL with its own tool: pg_dump --format=custom --file=<file> "$ADIT_DATABASE_URL" ' +
        '(see docs/operations/backup.md).',
    )
  const made = await backUpSqlite(database.path, file, options)
  return { ...made, asOf: isoOf(made.asOf) }
}
