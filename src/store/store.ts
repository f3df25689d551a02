// All SQL lives in this folder: tables, migrations and queries, written once for two engines. It knows nothing of
// the rules (domain/) or of HTTP. A query takes the database, then the workspace. `find` may miss, `get` throws.
import { type Dialect, Kysely, type RawBuilder, sql, type Transaction } from 'kysely'
import { isConflict } from './db-errors.ts'
import type { Ends } from './engine.ts'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import { type StorageEvents, StorageHealth } from './storage-fault.ts'
import type { Tables } from './tables.ts'
import { guarded, runGuarded } from './transaction-guard.ts'
import { probeWrites } from './write-probe.ts'

/** Reads, inside a transaction or outside. */
export type Db = Pick<Kysely<Tables>, 'selectFrom' | 'executeQuery' | 'getExecutor'>

/** A transaction: what writes or locks demands it, and only `transaction` hands it out. */
export type Tx = Transaction<Tables>

export interface Connection {
  /** For reads. Whatever writes goes through `transaction`; SQLite insists on it. */
  readonly db: Db
  /**
   * Runs the work in one transaction; if another one got in its way, runs it again from the start. Inside, every query goes
   * through what the work is given: any other is refused.
   */
  transaction<T>(work: (tx: Tx) => Promise<T>): Promise<T>
}

export interface Store extends Connection {
  readonly engine: 'sqlite' | 'postgres'
  /** A way of its own to the same database, for what must get through, or fail soon, whatever requests are waiting. */
  readonly controlConnection: Connection
  /** Tells other processes that there is something new, if they can hear it. */
  notify(): Promise<void>
  onNotify(listener: () => void): void
  /** Another one after each commit, whoever made it; undefined where there is no telling in passing. */
  dataVersion(): number | undefined
  /**
   * Rejects soon where the database does not answer or, after a write has failed for want of space and the like, cannot be
   * written; by the line, since waiting for other requests tells nothing of it.
   */
  ping(): Promise<void>
  close(): Promise<void>
}

export type Target = { engine: 'sqlite'; path: string } | { engine: 'postgres'; url: string }

const ATTEMPTS_MAX = 10
const PAUSE_MS = 10
const PAUSE_MAX_MS = 300
const CLOSE_PATIENCE_MS = 2_000

export interface StoreEvents extends StorageEvents {
  onLostConnection: (error: Error) => void
}

export function openStore(target: Target, { onLostConnection, ...storage }: StoreEvents): Store {
  const health = new StorageHealth(storage)
  const listeners = new Set<() => void>()
  const onRing = () => {
    for (const listener of listeners) listener()
  }
  const engine =
    target.engine === 'sqlite'
      ? openSqlite(target.path, health)
      : openPostgres(target.url, { onLostConnection, onRing }, health)
  const databases = new Map<Dialect, Kysely<Tables>>()
  const on = (dialect: Dialect): Kysely<Tables> => {
    const db = databases.get(dialect) ?? new Kysely<Tables>({ dialect: guarded(dialect) })
    databases.set(dialect, db)
    return db
  }
  const wayOf = ({ reader, writer }: Ends): Connection => ({
    db: on(reader),
    transaction: transactionsOn(on(writer)),
  })
  const main = wayOf(engine.main)
  const line = wayOf(engine.line)
  return {
    ...main,
    engine: target.engine,
    controlConnection: line,
    async notify() {
      if (engine.ring) await sql.raw(engine.ring).execute(main.db)
    },
    onNotify: (listener) => listeners.add(listener),
    dataVersion: engine.stamp ?? (() => undefined),
    async ping() {
      await sql`select 1`.execute(line.db)
      await health.requireHealthy(() => probeWrites(line.transaction))
    },
    async close() {
      const closed = Promise.all([...databases.values()].map((each) => each.destroy()))
      // A server that does not answer would be waited for; leaving it is all that is left to do.
      const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE_MS).unref())
      await Promise.race([closed, patience])
      engine.close?.()
    },
  }
}

/** Until when what is read from now on stays as it is; undefined where there is no telling. */
export function unchangedSince(store: Store): (() => boolean) | undefined {
  const stamp = store.dataVersion()
  return stamp === undefined ? undefined : () => store.dataVersion() === stamp
}

const transactionsOn = (db: Kysely<Tables>): Connection['transaction'] => {
  return async (work) => {
    for (let attempt = 1; ; attempt++) {
      try {
        return await db.transaction().execute((tx) => runGuarded(() => work(tx)))
      } catch (error) {
        if (!isConflict(error) || attempt === ATTEMPTS_MAX) throw error
        await new Promise((resolve) =>
          setTimeout(resolve, Math.min(PAUSE_MS * 2 ** attempt, PAUSE_MAX_MS) * Math.random()),
        )
      }
    }
  }
}

/** A 64-bit column as text: exact on both engines, where a driver would round or refuse. */
export const asText = (column: string): RawBuilder<string> => sql<string>`cast(${sql.ref(column)} as text)`
