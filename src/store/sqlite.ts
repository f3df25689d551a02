// Kysely on Node's own SQLite.
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
import { isBusy } from './db-errors.ts'
import type { Engine } from './engine.ts'
import { prepareFile } from './sqlite-file.ts'
import { type StorageHealth, storageFaultOf } from './storage-fault.ts'

/** SQLite waits by blocking the whole process. A read has next to nothing to wait for; a write waits in its own way. */
const READ_TIMEOUT_MS = 20
const BUSY_PATIENCE_MS = 5_000
const BUSY_PAUSE_MS = 10
const OPEN_TIMEOUT_MS = 5_000
const STATEMENTS_MAX = 200
/** Enough for what reports about thousands of workspaces touch again and again. */
const WRITER_CACHE_KIB = 16_000

/**
 * Two connections to one file. Reads have their own, which sees what is committed and waits for nobody; a write takes
 * its turn on the other one, and may wait there while another process writes.
 */
export function openSqlite(path: string, health: StorageHealth): Engine {
  prepareFile(path)
  const writer = connect(path, 0)
  setAndAssert(writer, 'cache_size', -WRITER_CACHE_KIB)
  const reader = connect(path, READ_TIMEOUT_MS)
  reader.exec('pragma query_only = 1')
  const ends = {
    reader: dialect(new SqliteReader(reader, health)),
    writer: dialect(new SqliteWriter(writer, health)),
  }
  const close = () => {
    for (const database of [reader, writer]) if (database.isOpen) database.close()
  }
  return { main: ends, line: ends, stamp: stampsOf(reader), close }
}

function stampsOf(database: DatabaseSync): () => number | undefined {
  const statement = database.prepare('pragma data_version')
  return () => {
    try {
      return statement.get()?.data_version as number
    } catch {
      // Busy, or closed; asking the database itself will tell.
      return undefined
    }
  }
}

function connect(path: string, busyTimeoutMs: number): DatabaseSync {
  let database: DatabaseSync | undefined
  try {
    database = new DatabaseSync(path, { timeout: OPEN_TIMEOUT_MS })
    setAndAssert(database, 'journal_mode', 'wal')
    // FULL: an answer is given after its commit has reached the disk, not only the operating system.
    setAndAssert(database, 'synchronous', 2)
    setAndAssert(database, 'foreign_keys', 1)
    setAndAssert(database, 'busy_timeout', busyTimeoutMs)
    return database
  } catch (error) {
    database?.close()
    throw storageFaultOf(error) ?? error
  }
}

function setAndAssert(database: DatabaseSync, pragma: string, wanted: string | number): void {
  database.exec(`pragma ${pragma} = ${wanted}`)
  const [got] = Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})
  if (got !== wanted)
    throw new Error(
      `SQLite refused ${pragma} = ${wanted} (it is ${got}). The database must be a file on a local disk.`,
    )
}

/** Kysely would make callers queue before they reach the driver; here the driver itself lets them take turns. */
class TurnsInDriver extends SqliteAdapter {
  override get supportsMultipleConnections(): boolean {
    return true
  }
}

const dialect = (driver: Driver): Dialect => ({
  createAdapter: () => new TurnsInDriver(),
  createDriver: () => driver,
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

/** Every query is done before the next line of the program runs, so there is nothing to take turns for. */
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
    throw new Error('Transactions belong to the writing connection.')
  }

  async commitTransaction(): Promise<void> {}

  async rollbackTransaction(): Promise<void> {}

  async destroy(): Promise<void> {}
}

class SqliteWriter implements Driver {
  readonly #database: DatabaseSync
  readonly #health: StorageHealth
  readonly #connection: SqliteConnection
  #turn: Promise<void> = Promise.resolve()
  #endTurn: () => void = () => {}
  #deadline = 0

  constructor(database: DatabaseSync, health: StorageHealth) {
    this.#database = database
    this.#health = health
    this.#connection = new SqliteConnection(database, health)
  }

  async init(): Promise<void> {}

  /** One transaction at a time. Patience is counted from here: whoever waited long for a turn has little left. */
  async acquireConnection(): Promise<SqliteConnection> {
    const deadline = performance.now() + BUSY_PATIENCE_MS
    const before = this.#turn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#turn = promise
    await before
    this.#endTurn = resolve
    this.#deadline = deadline
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#endTurn()
  }

  /** IMMEDIATE: a read that turns into a write half-way can be refused at once, whatever the patience. */
  async beginTransaction(): Promise<void> {
    for (;;) {
      try {
        this.#database.exec('begin immediate')
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > this.#deadline) throw this.#health.record(error)
        await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS * (0.5 + Math.random())))
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
    if (this.#database.isTransaction) this.#database.exec('rollback')
  }

  async destroy(): Promise<void> {}
}

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #health: StorageHealth
  readonly #statements = new Map<string, { statement: StatementSync; returnsRows: boolean }>()

  constructor(database: DatabaseSync, health: StorageHealth) {
    this.#database = database
    this.#health = health
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    try {
      return this.#execute(query)
    } catch (error) {
      throw this.#health.record(error)
    }
  }

  #execute<R>(query: CompiledQuery): QueryResult<R> {
    const { statement, returnsRows } = this.#prepare(query.sql)
    const parameters = query.parameters as SQLInputValue[]
    if (returnsRows) return { rows: statement.all(...parameters) as R[] }
    const { changes } = statement.run(...parameters)
    return { rows: [], numAffectedRows: BigInt(changes) }
  }

  // biome-ignore lint/correctness/useYield: Kysely asks for the method; nothing here streams.
  async *streamQuery<R>(): AsyncIterableIterator<QueryResult<R>> {
    throw new Error('SQLite answers are not streamed.')
  }

  #prepare(text: string) {
    const known = this.#statements.get(text)
    if (known) return known
    const statement = this.#database.prepare(text)
    const entry = { statement, returnsRows: statement.columns().length > 0 }
    if (this.#statements.size >= STATEMENTS_MAX) {
      const [oldest] = this.#statements.keys()
      this.#statements.delete(oldest as string)
    }
    this.#statements.set(text, entry)
    return entry
  }
}
