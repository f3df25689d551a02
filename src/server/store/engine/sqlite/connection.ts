// Kysely on node:sqlite.
import { DatabaseSync, type SQLInputValue, type StatementSync } from 'node:sqlite'
import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
} from 'kysely'
import type { Engine } from '../dialects.ts'
import { isBusy } from '../errors.ts'
import { type StorageHealth, toStorageFault } from '../storage-fault.ts'
import { CounterCache } from './counter-cache.ts'
import { prepareFile, requireRegularFile } from './file.ts'

/** SQLite's own busy timeout blocks the event loop. Reads hardly ever wait; writes retry asynchronously. */
const READ_BUSY_TIMEOUT_MS = 20
const WRITE_BUSY_TIMEOUT_MS = 5_000
const BUSY_RETRY_MS = 10
const OPEN_TIMEOUT_MS = 5_000
const STATEMENTS_MAX = 200
/** Large enough for the pages that usage reports of thousands of workspaces touch repeatedly. */
const WRITER_CACHE_KIB = 16_000

interface SqliteFile {
  path: string
  readOnly?: boolean
}

/**
 * Two connections to one file. Reads have their own, which sees committed data and does not wait for writers.
 * Writes queue for the other one, and may wait there while another process writes.
 */
export function openSqlite({ path, readOnly = false }: SqliteFile, health: StorageHealth): Engine {
  if (readOnly) requireRegularFile(path)
  else prepareFile(path)
  const writer = connect({ path, readOnly }, 0)
  setAndAssert(writer, 'cache_size', -WRITER_CACHE_KIB)
  const reader = connect({ path, readOnly }, READ_BUSY_TIMEOUT_MS)
  reader.exec('pragma query_only = 1')
  const counterCache = new CounterCache(writer, health)
  const dialects = {
    reader: dialect(new SqliteReader(reader, health)),
    writer: dialect(new SqliteWriter(writer, health, counterCache)),
  }
  const close = () => {
    for (const database of [reader, writer]) if (database.isOpen) database.close()
  }
  return { main: dialects, control: dialects, dataVersion: prepareDataVersion(reader), counterCache, close }
}

function prepareDataVersion(database: DatabaseSync): () => number | undefined {
  const statement = database.prepare('pragma data_version')
  // Arrays are faster to create than objects.
  statement.setReturnArrays(true)
  return () => {
    try {
      const [version] = statement.get() as unknown as [number]
      return version
    } catch {
      // The database is busy or closed; a query will report the actual error.
      return undefined
    }
  }
}

function connect({ path, readOnly = false }: SqliteFile, busyTimeoutMs: number): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: OPEN_TIMEOUT_MS, readOnly })
    if (!readOnly) setAndAssert(database, 'journal_mode', 'wal')
    // FULL: a commit returns once it is on disk, not only in the operating system's cache.
    setAndAssert(database, 'synchronous', 2)
    setAndAssert(database, 'foreign_keys', 1)
    setAndAssert(database, 'busy_timeout', busyTimeoutMs)
    return database
  } catch (error) {
    database?.close()
    throw toStorageFault(error) ?? error
  }
}

function setAndAssert(database: DatabaseSync, pragma: string, expected: string | number): void {
  database.exec(`pragma ${pragma} = ${expected}`)
  const [actual] = Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})
  if (actual !== expected)
    throw new Error(
      `SQLite did not apply ${pragma} = ${expected} (it is ${actual}). ` +
        'The database must be a file on a local disk.',
    )
}

/** Disables Kysely's own mutex for single connections; the driver below queues writers itself. */
class AdapterWithoutMutex extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

const dialect = (driver: Driver): Dialect => ({
  createAdapter: () => new AdapterWithoutMutex(),
  createDriver: () => driver,
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

/** Queries are synchronous, so any number of callers can share the connection without a queue. */
class SqliteReader implements Driver {
  readonly #connection: SqliteConnection

  constructor(database: DatabaseSync, health: StorageHealth) {
    this.#connection = new SqliteConnection(database, health)
  }

  async init(): Promise<void> {}

  async acquireConnection(): Promise<SqliteConnection> {
    return this.#connection
  }

  async releaseConnection(): Promise<void> {}

  async beginTransaction(): Promise<void> {
    throw new Error('Transactions run on the writing connection.')
  }

  async commitTransaction(): Promise<void> {}

  async rollbackTransaction(): Promise<void> {}

  async destroy(): Promise<void> {}
}

class SqliteWriter implements Driver {
  readonly #database: DatabaseSync
  readonly #health: StorageHealth
  readonly #counterCache: CounterCache
  readonly #connection: SqliteConnection
  #lastInQueue: Promise<void> = Promise.resolve()
  #release: () => void = () => {}
  #deadline = 0

  constructor(database: DatabaseSync, health: StorageHealth, counterCache: CounterCache) {
    this.#database = database
    this.#health = health
    this.#counterCache = counterCache
    this.#connection = new SqliteConnection(database, health, counterCache)
  }

  async init(): Promise<void> {}

  /** One transaction at a time. The busy timeout includes the time in this queue. */
  async acquireConnection(): Promise<SqliteConnection> {
    const deadline = performance.now() + WRITE_BUSY_TIMEOUT_MS
    const previous = this.#lastInQueue
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#lastInQueue = promise
    await previous
    this.#release = resolve
    this.#deadline = deadline
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#release()
  }

  /** IMMEDIATE, because a read transaction that turns into a write fails at once if the file is locked. */
  async beginTransaction(): Promise<void> {
    for (;;) {
      try {
        this.#database.exec('begin immediate')
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > this.#deadline) throw this.#health.record(error)
        await new Promise((resolve) => setTimeout(resolve, BUSY_RETRY_MS * (0.5 + Math.random())))
      }
    }
  }

  async commitTransaction(): Promise<void> {
    try {
      this.#database.exec('commit')
    } catch (error) {
      throw this.#health.record(error)
    }
  }

  async rollbackTransaction(): Promise<void> {
    this.#counterCache.clear()
    if (this.#database.isTransaction) this.#database.exec('rollback')
  }

  async destroy(): Promise<void> {}
}

/**
 * Statements of Kysely that make the counter cache stale. Of those, reports use INSERT only; the cache itself
 * runs their updates.
 */
const CHANGES_USAGE = /\b(?:delete from|update) "?usage_/i

interface Prepared {
  statement: StatementSync
  returnsRows: boolean
  changesUsage: boolean
}

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #health: StorageHealth
  readonly #counterCache: CounterCache | undefined
  readonly #statements = new Map<string, Prepared>()

  constructor(database: DatabaseSync, health: StorageHealth, counterCache?: CounterCache) {
    this.#database = database
    this.#health = health
    this.#counterCache = counterCache
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      return this.#execute(query)
    } catch (error) {
      throw this.#health.record(error)
    }
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const { statement, returnsRows, changesUsage } = this.#prepare(query.sql)
    if (changesUsage) this.#counterCache?.clear()
    const parameters = query.parameters as SQLInputValue[]
    if (returnsRows) return { rows: statement.all(...parameters) as R[] }
    const { changes } = statement.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  // biome-ignore lint/correctness/useYield: Kysely requires the method; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('SQLite results are not streamed.')
  }

  #prepare(text: string): Prepared {
    const known = this.#statements.get(text)
    if (known) return known
    const statement = this.#database.prepare(text)
    const entry = {
      statement,
      returnsRows: statement.columns().length > 0,
      changesUsage: CHANGES_USAGE.test(text),
    }
    if (this.#statements.size >= STATEMENTS_MAX) {
      const [oldest] = this.#statements.keys()
      this.#statements.delete(oldest as string)
    }
    this.#statements.set(text, entry)
    return entry
  }
}
