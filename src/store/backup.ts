// A copy of an SQLite database that others go on using. What lies under the name that was asked for is whole: the copy
// is made under another name, looked at, and only then renamed.
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
import { pathToFileURL } from 'node:url'

/** Of 4 KiB each: often enough to tell of progress and to be stopped. */
const PAGES_PER_STEP = 1_000
const BUSY_TIMEOUT_MS = 5_000
/** More changes than there will ever be between a backup and its restoration. */
const FEED_LEAP = 1_000_000_000

export interface BackupOptions {
  clock: () => number
  signal: AbortSignal
  onProgress: (percent: number) => void
  onCheck: () => void
}

export interface BackedUp {
  /** From just before the copy's state of the database: whatever began later and is missing in it came too late. */
  asOf: number
  bytes: number
  /** The number of the last migration that is in it. */
  schema: number
}

/** Nothing was written under the name; the message says why. */
export class CannotBackUp extends Error {
  override name = 'CannotBackUp'
}

export async function backUpSqlite(path: string, file: string, options: BackupOptions): Promise<BackedUp> {
  checkPlace(file)
  const source = openExisting(path)
  try {
    return await copy(source, file, options)
  } finally {
    source.close()
  }
}

function checkPlace(file: string): void {
  const folder = dirname(file)
  if (!existsSync(folder)) throw new CannotBackUp(`The folder ${folder} does not exist.`)
  if (!existsSync(file)) return
  if (statSync(file).isDirectory()) throw new CannotBackUp(`${file} is a folder; name a file in it.`)
  throw new CannotBackUp(`${file} exists already; a backup overwrites nothing.`)
}

/** Never makes one, unlike opening it in the usual way; and may write, so that it leaves no files of SQLite behind. */
function openExisting(path: string): DatabaseSync {
  if (!existsSync(path)) throw new CannotBackUp(`There is no database ${path}. Check ADIT_DATABASE_URL.`)
  const url = pathToFileURL(path)
  url.searchParams.set('mode', 'rw')
  const source = new DatabaseSync(url, { timeout: BUSY_TIMEOUT_MS })
  source.exec('pragma query_only = 1')
  return source
}

async function copy(source: DatabaseSync, file: string, options: BackupOptions): Promise<BackedUp> {
  const draft = `${file}.${process.pid}.part`
  // For its owner alone from the first byte on: it holds hashes and addresses.
  const written = openSync(draft, 'wx', 0o600)
  try {
    const asOf = options.clock()
    // A reading transaction holds one state of the database for the whole copy. Without it SQLite would begin anew after
    // every write of a server, and never end.
    source.exec('begin')
    const schema = schemaOf(source)
    await copyPages(source, draft, written, options)
    // At once: for as long as it lasts, the server's write-ahead log only grows.
    source.exec('rollback')
    options.onCheck()
    finish(draft, schema)
    options.signal.throwIfAborted()
    publish(draft, file)
    return { asOf, bytes: statSync(file).size, schema }
  } finally {
    for (const suffix of ['', '-journal', '-wal', '-shm']) rmSync(`${draft}${suffix}`, { force: true })
  }
}

async function copyPages(source: DatabaseSync, draft: string, written: number, options: BackupOptions) {
  try {
    await backup(source, draft, {
      rate: PAGES_PER_STEP,
      progress({ totalPages, remainingPages }) {
        // Thrown from here it ends the copy.
        options.signal.throwIfAborted()
        // Bit by bit: a server that commits would have to wait while the disk takes in the whole copy at once.
        fdatasyncSync(written)
        options.onProgress(Math.floor((100 * (totalPages - remainingPages)) / totalPages))
      },
    })
  } finally {
    // Not before: closing a file takes away the locks that SQLite holds on it in the same process.
    closeSync(written)
  }
}

function schemaOf(database: DatabaseSync): number {
  try {
    const row = database.prepare('select version from schema_version where id = 1').get()
    return (row as { version: number }).version
  } catch (error) {
    throw new CannotBackUp(`That is no database of adit: ${(error as Error).message}.`)
  }
}

function finish(draft: string, schema: number): void {
  const copied = new DatabaseSync(draft)
  try {
    // One file, with nothing beside it that belongs to it; the server turns the write-ahead log on again.
    copied.exec('pragma journal_mode = delete')
    forgetListeners(copied)
    const found = copied.prepare('pragma integrity_check(1)').get() ?? {}
    const [verdict] = Object.values(found)
    if (verdict !== 'ok')
      throw new CannotBackUp(`The copy is damaged, and so may be the database itself: ${verdict}`)
    if (schemaOf(copied) !== schema) throw new CannotBackUp('The copy has another schema than the database.')
  } finally {
    copied.close()
  }
}

/**
 * An edge that remembers more than a restored database knows would trust keys that are no longer there, and miss changes
 * that get numbers it has already seen. With an empty feed and a number from far ahead, every edge that comes back is
 * told to forget what it remembers. And no node that runs now will be there to be waited for.
 */
function forgetListeners(database: DatabaseSync): void {
  const has = (table: string) => database.prepare('select 1 from sqlite_schema where name = ?').get(table)
  if (has('key_feed_head'))
    database.exec(`delete from key_feed; update key_feed_head set number = number + ${FEED_LEAP}`)
  if (has('nodes')) database.exec('delete from nodes')
}

/** A link, because renaming would overwrite what somebody put there meanwhile; where there are no links, renaming. */
function publish(draft: string, file: string): void {
  try {
    linkSync(draft, file)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'EEXIST' || existsSync(file))
      throw new CannotBackUp(`${file} exists by now; a backup overwrites nothing.`)
    renameSync(draft, file)
  }
  syncFolder(dirname(file))
}

/** So that the name outlives a power cut, where the system can be asked for that. */
function syncFolder(path: string): void {
  try {
    const folder = openSync(path, 'r')
    fsyncSync(folder)
    closeSync(folder)
  } catch {}
}
