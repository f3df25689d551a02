// Scheduled backups: files with the time of the backup as their name, of which only the newest are kept.
import { randomInt } from 'node:crypto'
import { closeSync, lstatSync, openSync, readdirSync, readSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { changeExisting, readSchema } from './backup.ts'

const FILE_NAME = /^adit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/

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

/** Deletes all but the newest complete backups of the database, and returns the deleted files. */
export function deleteOldBackups(folder: string, { id, keep }: { id: number; keep: number }): string[] {
  const files = readdirSync(folder)
    .filter((name) => FILE_NAME.test(name))
    .sort()
    .reverse()
    .map((name) => join(folder, name))
    .filter((file) => isCompleteBackup(file, id))
    .slice(keep)
  for (const file of files) rmSync(file)
  return files
}

/** Reads the header of the file: https://www.sqlite.org/fileformat.html#the_database_header */
function isCompleteBackup(file: string, id: number): boolean {
  const found = lstatSync(file)
  if (!found.isFile()) return false
  const header = Buffer.alloc(100)
  const descriptor = openSync(file, 'r')
  try {
    readSync(descriptor, header)
  } finally {
    closeSync(descriptor)
  }
  // 1 stands for 65,536, which a 16-bit number cannot be.
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return (
    header.toString('latin1', 0, 16) === 'SQLite format 3\0' &&
    found.size === pageSize * header.readUInt32BE(28) &&
    header.readUInt32BE(60) === id
  )
}

/** The server reports it as a metric. */
export function recordBackup(path: string, at: number): void {
  changeExisting(path, (database) =>
    database.prepare('update maintenance set backed_up_at = ? where id = 1').run(at),
  )
}
