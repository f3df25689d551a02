// Database backups.

import { join } from 'node:path'
import type { DatabaseTarget } from '../../store/engine/store.ts'
import {
  BackupError,
  type BackupOptions,
  backUpSqlite,
  checkTarget,
  insertAuditEntry,
} from '../../store/maintenance/backup.ts'
import {
  backupFileName,
  deleteOldBackups,
  deleteOldDrafts,
  identifyDatabase,
  recordBackup,
} from '../../store/maintenance/backup-rotation.ts'
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
  /**
   * Called if the backup could not be recorded, or older ones not be deleted. The backup goes on: a database
   * that cannot be written needs one all the more.
   */
  onFailure: (what: string, error: Error) => void
}

/** SQLite only. Does not migrate, because a backup before an upgrade must keep the old schema. */
export async function backUp(database: DatabaseTarget, file: string, options: Options) {
  const path = requireSqlite(database)
  const onStart = () =>
    attempt(options, 'The backup is not recorded in the audit log', () => {
      const entry = databaseEntry(options.actor, 'database.backed-up', { file: [null, file] })
      insertAuditEntry(path, createAuditRow(options, entry))
    })
  const result = await backUpSqlite(path, file, { ...options, onStart })
  return { file, ...result, asOf: toIso(result.asOf) }
}

/**
 * Writes a backup to a new file in the folder. If it is complete, records its time for the metric, and
 * deletes all but the newest `keep` backups of this database in the folder.
 */
export async function backUpToFolder(
  database: DatabaseTarget,
  { folder, keep }: { folder: string; keep: number },
  options: Options,
) {
  const path = requireSqlite(database)
  const now = options.clock()
  const file = join(folder, backupFileName(now))
  checkTarget(file)
  // First, because they may be what fills the disk.
  attemptDeletion(options, () => deleteOldDrafts(folder, now))
  const id = attempt(options, 'Older backups are not deleted', () => identifyDatabase(path))
  const result = await backUp(database, file, options)
  attempt(options, 'The time of the backup is not recorded', () =>
    recordBackup(path, Date.parse(result.asOf)),
  )
  const deleted = id === undefined ? [] : attemptDeletion(options, () => deleteOldBackups(file, { id, keep }))
  return { ...result, deleted }
}

/** Returns the deleted files. */
function attemptDeletion(options: Options, act: () => ReturnType<typeof deleteOldBackups>): string[] {
  const failure = 'Older files could not be deleted'
  const { deleted, errors } = attempt(options, failure, act) ?? { deleted: [], errors: [] }
  for (const error of errors) options.onFailure(failure, error)
  return deleted
}

function requireSqlite(database: DatabaseTarget): string {
  if (database.engine === 'sqlite') return database.path
  throw new BackupError(
    'Back up PostgreSQL with its own tool: pg_dump --format=custom --file=<file> "$ADIT_DATABASE_URL" ' +
      '(see docs/operations/backup.md).',
  )
}

/** Returns undefined after a failure. Without a database to back up, it throws. */
function attempt<T>({ onFailure }: Options, failure: string, act: () => T): T | undefined {
  try {
    return act()
  } catch (error) {
    if (error instanceof BackupError) throw error
    onFailure(failure, error as Error)
    return undefined
  }
}
