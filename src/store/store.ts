// All SQL lives in this folder: tables, migrations and queries, written once for two engines. It knows nothing of
// the rules (domain/) or of HTTP. A query takes the database, then the workspace. `find` may miss, `get` throws.
import { Kysely, type RawBuilder, sql } from 'kysely'
import { openPostgres } from './postgres.ts'
import { openSqlite } from './sqlite.ts'
import type { Tables } from './tables.ts'
import { isConflict } from './unavailable.ts'

export type Db = Kysely<Tables>

export interface Store {
  readonly engine: 'sqlite' | 'postgres'
  /** For reads. Whatever writes goes through `transaction`; SQLite insists on it. */
  readonly db: Db
  /** Runs the work in one transaction; if another one got in its way, runs it again from the start. */
  transaction<T>(work: (db: Db) => Promise<T>): Promise<T>
  ping(): Promise<void>
  close(): Promise<void>
}

export type Target = { engine: 'sqlite'; path: string } | { engine: 'postgres'; url: string }

const ATTEMPTS_MAX = 6
const PAUSE_MS = 10
const CLOSE_PATIENCE_MS = 2_000

export function openStore(target: Target, onLostConnection: (error: Error) => void): Store {
  const { reader, writer } =
    target.engine === 'sqlite' ? openSqlite(target.path) : openPostgres(target.url, onLostConnection)
  const db: Db = new Kysely<Tables>({ dialect: reader })
  const writing: Db = writer === reader ? db : new Kysely<Tables>({ dialect: writer })
  return {
    engine: target.engine,
    db,
    async transaction(work) {
      for (let attempt = 1; ; attempt++) {
        try {
          return await writing.transaction().execute(work)
        } catch (error) {
          if (!isConflict(error) || attempt === ATTEMPTS_MAX) throw error
          await new Promise((resolve) => setTimeout(resolve, PAUSE_MS * 2 ** attempt * Math.random()))
        }
      }
    },
    async ping() {
      await sql`select 1`.execute(db)
    },
    async close() {
      const closed = Promise.all([db.destroy(), writing === db ? undefined : writing.destroy()])
      // A server that does not answer would be waited for; leaving it is all that is left to do.
      const patience = new Promise((resolve) => setTimeout(resolve, CLOSE_PATIENCE_MS).unref())
      await Promise.race([closed, patience])
    },
  }
}

/** A 64-bit column as text: exact on both engines, where a driver would round or refuse. */
export const exact = (column: string): RawBuilder<string> => sql<string>`cast(${sql.ref(column)} as text)`
