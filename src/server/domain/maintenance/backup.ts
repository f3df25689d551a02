// Database backups.

import type { Target } from '../../store/engine/store.ts'
import {
  BackupError,
  type BackupOptions,
  backUpSqlite,
  insertAuditEntry,
} from '../../store/maintenance/backup.ts'
import { verifyBackup } from '../../store/maintenance/verify-backup.ts'
import { createAuditRow } from '../audit/entries.ts'
import { databaseEntry } from '../audit/operator-actions.ts'
import type { Actor } from '../context.ts'
import type { Ids } from '../ids.ts'
import { toIso } from '../timestamps.ts'

export { BackupError, verifyBackup }

interface Options extends Omit<BackupOptions, 'onStart'> {
  actor: Actor
  ids: Ids
  /** Called if the entry could not be written; a database in that state needs a backup all the more. */
  onAuditFailed: (error: Error) => void
}

/** SQLite only. Does not migrate, because a backup before an upgrade must keep the old schema. */
export async function backUp(database: Target, file: string, options: Options) {
  if (database.engine === 'postgres')
    throw new BackupError(
      'Back up PostgreSQL with its own tool: pg_dump --format=custom --file=<file> "$ADIT_DATABASE_URL" ' +
        '(see docs/operations/backup.md).',
    )
  const onStart = () => record(database.path, file, options)
  const result = await backUpSqlite(database.path, file, { ...options, onStart })
  return { ...result, asOf: toIso(result.asOf) }
}

function record(path: string, file: string, { actor, onAuditFailed, ...services }: Options) {
  const entry = databaseEntry(actor, 'database.backed-up', { file: [null, file] })
  try {
    insertAuditEntry(path, createAuditRow(services, entry))
  } catch (error) {
    onAuditFailed(error as Error)
  }
}
