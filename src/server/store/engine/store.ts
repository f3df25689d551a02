// Opens the database. All SQL is in src/server/store: tables, migrations and queries, written once for both
// engines. Query functions take the database, then the workspace. `find` may return undefined, `get` throws.
import { type Dialect, Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import type { Dialects } from './dialects.ts'
import { isConflict, isUnsupported } from './errors.ts'
import { openPostgres } from './postgres/connection.ts'
import type { PoolUse } from './postgres/replaceable-pool.ts'
import { createUsageShards, type UsageShards, undistributed } from './postgres/usage-shards.ts'
import { openSqlite } from './sqlite/connection.ts'
import type { CounterCache } from './sqlite/counter-cache.ts'
import { type StorageEvents, StorageHealth } from './storage-fault.ts'
import type { Tables } from './tables.ts'
import { guardConnections, runInTransactionScope } from './transaction-guard.ts'
import type { WorkerBus } from './worker-bus.ts'
import { probeWrites } from './write-probe.ts'

/** A database for reads, inside a transaction or outside. */
export type Db = Pick<Kysely<Tables>, 'selectFrom' | 'executeQuery' | 'getExecutor'>

/** A transaction. Functions that write or lock require one, and only `transaction` creates it. */
export type Tx = Transaction<Tables>

export interface DatabaseConnection {
  /** For reads. Writes go through `transaction`; SQLite enforces that. */
  readonly db: Db
  /**
   * Runs the work in one transaction and retries it from the start on a serialization conflict. Inside, every
   * query must use the given `Tx`; any other throws.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
  /**
   * Runs an update of one row as a transaction of its own, and returns what its RETURNING clause selects:
   * undefined if there is no such row. On PostgreSQL it is one round trip and does not wait for the disk: a
   * crash of the server may undo it.
   */
  updateUnflushed<V extends object, R>(update: UnflushedUpdate<V, R>, values: V): Promise<R | undefined>
}

/** The statement with and without a flush to the disk; `unflushedUpdate` creates it. */
export interface UnflushedUpdate<V, R> {
  unflushed(db: Tx, values: V): Promise<R[]>
  flushed(db: Tx, values: V): Promise<R[]>
}

export interface Store extends DatabaseConnection {
  readonly engine: 'sqlite' | 'postgres'
  /** A separate connection with short timeouts, for work that must not queue behind requests. */
  readonly controlConnection: DatabaseConnection
  readonly usageShards: UsageShards
  /** Undefined on PostgreSQL. */
  readonly counterCache: CounterCache | undefined
  /** Sends up to 8,000 bytes to the processes that listen with `onNotify`; on SQLite to the other workers. */
  notify(payload: string): Promise<void>
  /** Returns a function that removes the listener. */
  onNotify(listener: (payload: string) => void): () => void
  /**
   * Returns a number that changes with every commit by any process, or undefined while the database is busy.
   * PostgreSQL has no cheap equivalent.
   */
  readonly dataVersion: (() => number | undefined) | undefined
  /** The pool of requests; undefined on SQLite. */
  poolUse(): PoolUse | undefined
  /** On PostgreSQL: commits an empty transaction, and waits for a synchronous standby. No timeout. */
  confirmCommit(): Promise<void>
  /** Whether writes are rejected because commits hang; undefined on SQLite. */
  areCommitsBlocked(): boolean | undefined
  /**
   * Rejects if the database does not respond or, after a storage fault, cannot be written. Uses the control
   * connection, so that a busy pool does not count as an outage.
   */
  ping(): Promise<void>
  close(): Promise<void>
}

export type DatabaseTarget =
  /** Opened with `readOnly`, the file stays as it is: without that, it gets a write-ahead log. */
  { engine: 'sqlite'; path: string; readOnly?: boolean } | { engine: 'postgres'; url: string }

const ATTEMPTS_MAX = 10
const BACKOFF_MS = 10
const BACKOFF_MAX_MS = 300
const CLOSE_TIMEOUT_MS = 2_000

interface StoreEvents extends StorageEvents {
  onLostConnection: (error: Error) => void
  /** PostgreSQL: commits hang, or no longer do. */
  onCommitsBlocked?: (isBlocked: boolean) => void
}

/** `workerBus` is set if this process is one of several workers. */
export function openStore(
  target: DatabaseTarget,
  { onLostConnection, onCommitsBlocked = () => {}, ...storage }: StoreEvents,
  workerBus?: WorkerBus,
): Store {
  const health = new StorageHealth(storage)
  const listeners = new Set<(payload: string) => void>()
  const onNotify = (payload: string) => {
    for (const listener of listeners) listener(payload)
  }
  const engine =
    target.engine === 'sqlite'
      ? openSqlite(target, health)
      : openPostgres(target.url, { onLostConnection, onNotify, onCommitsBlocked }, health)
  if (target.engine === 'sqlite') workerBus?.onBroadcast(onNotify)
  const databases = new Map<Dialect, Kysely<Tables>>()
  const databaseOn = (dialect: Dialect): Kysely<Tables> => {
    const db = databases.get(dialect) ?? new Kysely<Tables>({ dialect: guardConnections(dialect) })
    databases.set(dialect, db)
    return db
  }
  const connectionOn = ({ reader, writer, runTransaction }: Dialects): DatabaseConnection => {
    const transaction = transactionsOn(databaseOn(writer), runTransaction)
    const updateUnflushed = unflushedUpdatesOn(target.engine, databaseOn(writer), transaction)
    return { db: databaseOn(reader), transaction, updateUnflushed }
  }
  const main = connectionOn(engine.main)
  const control = connectionOn(engine.control)
  return {
    ...main,
    engine: target.engine,
    controlConnection: control,
    usageShards: target.engine === 'sqlite' ? undistributed : createUsageShards(main.db),
    counterCache: engine.counterCache,
    async notify(payload) {
      if (engine.notification) await main.db.executeQuery(engine.notification(payload))
      else workerBus?.broadcast(payload)
    },
    onNotify(listener) {
      listeners.add(listener)
      return () => listeners.delete(listener)
    },
    dataVersion: engine.dataVersion,
    poolUse: () => engine.poolUse?.(),
    confirmCommit: async () => engine.confirmCommit?.(),
    areCommitsBlocked: () => engine.areCommitsBlocked?.(),
    async ping() {
      await sql`select 1`.execute(control.db)
      await health.requireHealthy(() => probeWrites(control.transaction))
    },
    async close() {
      const closed = Promise.all([...databases.values()].map((db) => db.destroy()))
      // A server that does not respond must not block shutdown.
      const timeout = new Promise((resolve) => setTimeout(resolve, CLOSE_TIMEOUT_MS).unref())
      await Promise.race([closed, timeout])
      engine.close?.()
    },
  }
}

const transactionsOn = (
  db: Kysely<Tables>,
  run: Dialects['runTransaction'] = (work) => work(),
): DatabaseConnection['transaction'] => {
  return async (work) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await run(() => db.transaction().execute((tx) => runInTransactionScope(() => work(tx))))
      } catch (error) {
        if (!isConflict(error) || attempt === ATTEMPTS_MAX) throw error
        const backoffMs = Math.min(BACKOFF_MS * 2 ** attempt, BACKOFF_MAX_MS) * Math.random()
        await new Promise((resolve) => setTimeout(resolve, backoffMs))
      }
    }
  }
}

const unflushedUpdatesOn = (
  engine: Store['engine'],
  db: Kysely<Tables>,
  transaction: DatabaseConnection['transaction'],
): DatabaseConnection['updateUnflushed'] => {
  return async (update, values) => {
    try {
      // A statement outside a transaction is a transaction of its own.
      if (engine === 'postgres') return (await update.unflushed(db as Tx, values))[0]
    } catch (error) {
      // Citus rejects volatile functions in the update of a distributed table.
      if (!isUnsupported(error)) throw error
    }
    return (await transaction((tx) => update.flushed(tx, values)))[0]
  }
}

/** Selects a 64-bit column as text, because drivers round it or reject it as a number. */
export const asText = (column: string): RawBuilder<string> => sql<string>`cast(${sql.ref(column)} as text)`
