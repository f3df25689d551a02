// Scheduled backups: files with the time of the backup as their name, of which only the newest are kept.
import { randomInt } from 'node:crypto'
import { lstatSync, readdirSync, rmSync } from 'node:fs'
import { basename, dirname, join } from 'node:path'
import { DAY_MS } from '../../../lib/time.ts'
import { readHeader } from '../engine/sqlite/file.ts'
import { changeExisting, DRAFT_SUFFIX, readSchema } from './backup.ts'

const FILE_NAME = /^adit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/
/** No backup takes that long: the file is that of one that was killed. */
const DRAFT_RETENTION_MS = DAY_MS

/** Names sort by time. */
export const backupFileName = (at: number): string =>
  `adit-${new Date(at).toISOString().replaceAll(':', '-')}.db`

const ID_MAX = 2 ** 31

/**
 * Returns a number that identifies the database and its copies, so that a backup never deletes those of
 * another database in the same folder. It is the `user_version` of SQLite, which is not used otherwise.
 */
export const identifyDatabase = (path: string): number =>
  changeExisting(path, (database) => {
    readSchema(database)
    const { user_version: id } = database.prepare('pragma user_version').get() as { user_version: number }
    if (id !== 0) return id
    const created = randomInt(1, ID_MAX)
    database.exec(`pragma user_version = ${created}`)
    return created
  })

interface Deletion {
  deleted: string[]
  /** The errors of files that could not be deleted. */
  errors: Error[]
}

/**
 * Deletes the oldest complete backups of the database in the folder of this one, so that `keep` are left.
 * Backups with a later name than this one were made by a clock that was wrong: they neither count nor are
 * deleted.
 */
export function deleteOldBackups(newest: string, { id, keep }: { id: number; keep: number }): Deletion {
  const folder = dirname(newest)
  const names = readdirSync(folder).filter((name) => FILE_NAME.test(name) && name <= basename(newest))
  const files = names
    .sort()
    .reverse()
    .map((name) => join(folder, name))
  return deleteAll(files.filter((file) => isCompleteBackup(file, id)).slice(keep))
}

/** Deletes what killed backups have left, which would fill the disk. */
export function deleteOldDrafts(folder: string, now: number): Deletion {
  const names = readdirSync(folder).filter((name) => {
    const backup = name.replace(DRAFT_SUFFIX, '')
    return backup !== name && FILE_NAME.test(backup)
  })
  const isOld = (file: string) => {
    const found = lstatSync(file, { throwIfNoEntry: false })
    return found?.isFile() && found.mtimeMs < now - DRAFT_RETENTION_MS
  }
  return deleteAll(names.map((name) => join(folder, name)).filter(isOld))
}

/** Another process may delete the same files. */
function deleteAll(files: readonly string[]): Deletion {
  const deleted: string[] = []
  const errors: Error[] = []
  for (const file of files)
    try {
      rmSync(file, { force: true })
      deleted.push(file)
    } catch (error) {
      errors.push(error as Error)
    }
  return { deleted, errors }
}

function isCompleteBackup(file: string, id: number): boolean {
  try {
    const found = lstatSync(file)
    const header = found.isFile() ? readHeader(file) : undefined
    return header?.bytes === found.size && header.userVersion === id
  } catch {
    // A file that another process has deleted, or that this user may not read.
    return false
  }
}

/** The server reports it as a metric. */
export function recordBackup(path: string, at: number): void {
  changeExisting(path, (database) =>
    database.prepare('update maintenance set backed_up_at = ? where id = 1').run(at),
  )
}
