// Online backup of an SQLite database. The backup appears under its name only when complete: it is written to
// a temporary file, checked, and then renamed.
import { randomBytes } from 'node:crypto'
import {
  closeSync,
  existsSync,
  fdatasyncSync,
  fsyncSync,
  linkSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
} from 'node:fs'
import { dirname } from 'node:path'
import { backup, DatabaseSync } from 'node:sqlite'
import { setImmediate } from 'node:timers/promises'
import { pathToFileURL } from 'node:url'
import type { AuditRow } from '../audit/entries.ts'
import { findUnreleased, type VersionRow } from '../schema/migrate.ts'

/** Pages of 4 KiB; progress and cancellation are handled between steps. */
const PAGES_PER_STEP = 1_000
const BUSY_TIMEOUT_MS = 5_000
const SQLITE_ERROR = 1
const SQLITE_CORRUPT = 11
const SQLITE_NOTADB = 26
/** The suffix of the file that a backup is written to. */
export const DRAFT_SUFFIX = /\.[0-9a-f]{12}\.part(-journal|-wal|-shm)?$/
/** More than the number of changes between any backup and its restore. */
const SEQUENCE_GAP = 1_000_000_000

export interface BackupOptions {
  clock: () => number
  /** Called before the snapshot, if there is an Adit database. */
  onStart: () => void
  signal: AbortSignal
  onProgress: (percent: number) => void
  onCheck: () => void
}

interface BackupResult {
  /** A time just before the snapshot: everything committed earlier is in the backup. */
  asOf: number
  bytes: number
  /** Schema version of the backup. */
  schema: number
}

/** Uses the columns that the database has: its schema may be older. */
export function insertAuditEntry(path: string, row: AuditRow): void {
  changeExisting(path, (database) => {
    const existing = database.prepare("select name from pragma_table_info('audit_log')").all()
    const columns = existing.map(({ name }) => String(name) as keyof AuditRow).filter((name) => name in row)
    const placeholders = columns.map(() => '?').join(', ')
    database
      .prepare(`insert into audit_log (${columns.join(', ')}) values (${placeholders})`)
      .run(...columns.map((name) => row[name]))
  })
}

/** Without the store, which would migrate the database. */
export function changeExisting<T>(path: string, change: (database: DatabaseSync) => T): T {
  const database = openExisting(path)
  try {
    database.exec('pragma query_only = 0')
    return change(database)
  } finally {
    database.close()
  }
}

/** No backup was written; the message has the reason. */
export class BackupError extends Error {
  override name = 'BackupError'
}

export async function backUpSqlite(
  path: string,
  file: string,
  options: BackupOptions,
): Promise<BackupResult> {
  checkTarget(file)
  const source = openExisting(path)
  try {
    return await copy(source, file, options)
  } finally {
    source.close()
  }
}

export function checkTarget(file: string): void {
  const directory = dirname(file)
  if (!statSync(directory, { throwIfNoEntry: false })?.isDirectory())
    throw new BackupError(`The directory ${directory} does not exist. Create it first.`)
  if (!existsSync(file)) return
  if (statSync(file).isDirectory())
    throw new BackupError(`${file} is a directory; specify a file, or use --keep.`)
  throw new BackupError(`${file} already exists. Choose another file name.`)
}

/** Opens without creating. Read-write, so that SQLite removes its -wal and -shm files on close. */
function openExisting(path: string): DatabaseSync {
  if (!existsSync(path)) throw new BackupError(`Database ${path} does not exist. Check ADIT_DATABASE_URL.`)
  const url = pathToFileURL(path)
  url.searchParams.set('mode', 'rw')
  const source = new DatabaseSync(url, { timeout: BUSY_TIMEOUT_MS })
  source.exec('pragma query_only = 1')
  return source
}

async function copy(source: DatabaseSync, file: string, options: BackupOptions): Promise<BackupResult> {
  // Random, because process ids repeat in containers: the file of a killed backup may still exist.
  const draft = `${file}.${randomBytes(6).toString('hex')}.part`
  try {
    const { asOf, schema } = await writeDraft(source, draft, options)
    options.onCheck()
    finish(draft, schema)
    await receiveSignals()
    options.signal.throwIfAborted()
    publish(draft, file)
    return { asOf, bytes: statSync(file).size, schema }
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${draft}${suffix}`, { force: true })
  }
}

/** Copies one snapshot of the database. */
async function writeDraft(source: DatabaseSync, draft: string, options: BackupOptions) {
  // Created readable only by its owner, because it contains hashes and email addresses.
  const descriptor = openSync(draft, 'wx', 0o600)
  try {
    readSchema(source)
    options.onStart()
    const asOf = options.clock()
    // A read transaction pins one snapshot for the whole copy. Without it SQLite would restart the copy after
    // every write of a server, and might never finish.
    source.exec('begin')
    const { version: schema } = readSchema(source)
    await copyPages(source, draft, descriptor, options)
    // As early as possible, because the open transaction keeps the write-ahead log from being truncated.
    source.exec('rollback')
    return { asOf, schema }
  } finally {
    // Only after the copy, because closing the file drops the POSIX locks that SQLite holds on it in this
    // process.
    closeSync(descriptor)
  }
}

const copyPages = (source: DatabaseSync, draft: string, descriptor: number, options: BackupOptions) =>
  backup(source, draft, {
    rate: PAGES_PER_STEP,
    progress({ totalPages, remainingPages }) {
      // Throwing here aborts the copy.
      options.signal.throwIfAborted()
      // In steps, because one large sync at the end would delay the commits of a running server.
      fdatasyncSync(descriptor)
      options.onProgress(Math.floor((100 * (totalPages - remainingPages)) / totalPages))
    },
  })

/**
 * Runs the handlers of signals that arrived while the event loop was blocked. The first callback may still
 * run in the iteration that was blocked, after its poll for events; the second runs after the next poll.
 */
async function receiveSignals(): Promise<void> {
  await setImmediate()
  await setImmediate()
}

/** Messages by the result code of SQLite. */
const READ_PROBLEMS: Record<number, string | undefined> = {
  [SQLITE_ERROR]: 'Not an Adit database',
  [SQLITE_CORRUPT]: 'The file is damaged',
  [SQLITE_NOTADB]: 'Not an Adit database',
}

/** Throws if it is not a database of a released Adit. */
export function readSchema(database: DatabaseSync): VersionRow {
  let row: VersionRow | undefined
  try {
    row = database.prepare('select * from schema_version where id = 1').get() as VersionRow | undefined
  } catch (error) {
    const { message, errcode = 0 } = error as Error & { errcode?: number }
    throw new BackupError(`${READ_PROBLEMS[errcode] ?? 'The database cannot be read'}: ${message}.`)
  }
  if (!row) throw new BackupError('Not an Adit database: it has no schema version.')
  const unreleased = findUnreleased(row)
  if (unreleased) throw new BackupError(unreleased.message)
  return row
}

function finish(draft: string, schema: number): void {
  const copied = new DatabaseSync(draft)
  try {
    // Makes the backup a single file without a -wal file; the server turns WAL mode on again.
    copied.exec('pragma journal_mode = delete')
    resetChangeLog(copied)
    const result = checkIntegrity(copied)
    if (result !== 'ok')
      throw new BackupError(`The copy failed the integrity check; the database may be damaged: ${result}`)
    if (readSchema(copied).version !== schema)
      throw new BackupError('The copy has a different schema version than the database.')
  } finally {
    copied.close()
  }
}

/** Returns `ok`, or the first problem. */
export const checkIntegrity = (database: DatabaseSync): unknown =>
  Object.values(database.prepare('pragma integrity_check(1)').get() ?? {})[0]

/**
 * Edges may have cached keys that a restored database does not have, and would skip changes whose sequence
 * they have already seen. An empty change log with a sequence far ahead makes every edge drop its cache. The
 * nodes that run now will not exist then, so revocations must not wait for them.
 */
function resetChangeLog(database: DatabaseSync): void {
  database.exec(`delete from change_log; delete from nodes;
    update change_log_head set sequence = sequence + ${SEQUENCE_GAP}`)
}

/** Uses a hard link if possible, because a rename would overwrite a file created meanwhile. */
function publish(draft: string, file: string): void {
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(file))
      throw new BackupError(`${file} was created meanwhile. Choose another file name.`)
    renameSync(draft, file)
  }
  syncDirectory(dirname(file))
}

/** Makes the new name survive a power failure, where the platform supports it. */
function syncDirectory(path: string): void {
  try {
    const directory = openSync(path, 'r')
    fsyncSync(directory)
    closeSync(directory)
  } catch {}
}
