// Kysely on Node's own SQLite: one connection, taken in turns.
import { mkdirSync } from 'node:fs'
import { dirname } from 'node:path'
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
import { isBusy } from './unavailable.ts'

/** SQLite waits by blocking the whole process, so its own patience is short; ours, below, lets others work. */
const BUSY_TIMEOUT_MS = 20
const BUSY_PATIENCE_MS = 5_000
const BUSY_PAUSE_MS = 10
const OPEN_TIMEOUT_MS = 5_000
const STATEMENTS_MAX = 200

export function openSqlite(path: string): DatabaseSync {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 })
  const database = new DatabaseSync(path, { timeout: OPEN_TIMEOUT_MS })
  try {
    setAndAssert(database, 'journal_mode', 'wal')
    // FULL: an answer is given after its commit has reached the disk, not only the operating system.
    setAndAssert(database, 'synchronous', 2)
    setAndAssert(database, 'foreign_keys', 1)
    setAndAssert(database, 'busy_timeout', BUSY_TIMEOUT_MS)
  } catch (error) {
    database.close()
    throw error
  }
  return database
}

function setAndAssert(database: DatabaseSync, pragma: string, wanted: string | number): void {
  database.exec(`pragma ${pragma} = ${wanted}`)
  const [got] = Object.values(database.prepare(`pragma ${pragma}`).get() ?? {})
  if (got !== wanted)
    throw new Error(
      `SQLite refused ${pragma} = ${wanted} (it is ${got}). The database must be a file on a local disk.`,
    )
}

export const sqliteDialect = (database: DatabaseSync): Dialect => ({
  createAdapter: () => new SqliteAdapter(),
  createDriver: () => new SqliteDriver(database),
  createIntrospector: (db) => new SqliteIntrospector(db),
  createQueryCompiler: () => new SqliteQueryCompiler(),
})

class SqliteDriver implements Driver {
  readonly #database: DatabaseSync
  readonly #connection: SqliteConnection
  #turn: Promise<void> = Promise.resolve()
  #endTurn: () => void = () => {}

  constructor(database: DatabaseSync) {
    this.#database = database
    this.#connection = new SqliteConnection(database)
  }

  async init(): Promise<void> {}

  /** One at a time: a query outside a transaction must not see, or end up in, somebody else's. */
  async acquireConnection(): Promise<SqliteConnection> {
    const before = this.#turn
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#turn = promise
    await before
    this.#endTurn = resolve
    return this.#connection
  }

  async releaseConnection(): Promise<void> {
    this.#endTurn()
  }

  /** IMMEDIATE: a read that turns into a write half-way can be refused at once, whatever the patience. */
  async beginTransaction(): Promise<void> {
    const deadline = performance.now() + BUSY_PATIENCE_MS
    for (;;) {
      try {
        this.#database.exec('begin immediate')
        return
      } catch (error) {
        if (!isBusy(error) || performance.now() > deadline) throw error
        await new Promise((resolve) => setTimeout(resolve, BUSY_PAUSE_MS * (0.5 + Math.random())))
      }
    }
  }

  async commitTransaction(): Promise<void> {
    this.#database.exec('commit')
  }

  async rollbackTransaction(): Promise<void> {
    if (this.#database.isTransaction) this.#database.exec('rollback')
  }

  async destroy(): Promise<void> {
    if (this.#database.isOpen) this.#database.close()
  }
}

class SqliteConnection implements DatabaseConnection {
  readonly #database: DatabaseSync
  readonly #statements = new Map<string, { statement: StatementSync; returnsRows: boolean }>()

  constructor(database: DatabaseSync) {
    this.#database = database
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
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
