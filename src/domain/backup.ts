// A copy of everything, for a bad day.
import { type BackupOptions, backUpSqlite, CannotBackUp } from '../store/backup.ts'
import type { Target } from '../store/store.ts'
import { isoOf } from './timestamps.ts'

export { CannotBackUp }

/** Only of SQLite. Opens the database as it is: whoever makes a backup before an upgrade wants what was there before. */
export async function backUp(database: Target, file: string, options: BackupOptions) {
  if (database.engine === 'postgres')
    throw new CannotBackUp(
      'PostgreSQL has its own tool for backups: pg_dump --format=custom --file=<file> "$ADIT_DATABASE_URL" ' +
        '(see docs/operations/backup.md).',
    )
  const made = await backUpSqlite(database.path, file, options)
  return { ...made, asOf: isoOf(made.asOf) }
}
