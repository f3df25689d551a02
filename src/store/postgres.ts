// Kysely on node-postgres, with every wait bounded and no connection error left to kill the process.
import { type Dialect, PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { isConnectionLost, Unreachable } from './unavailable.ts'

const POOL_MAX = 10
const CONNECT_TIMEOUT_MS = 3_000
const STATEMENT_TIMEOUT_MS = 8_000
/** Longer than the server's own limit: it only ends the wait for a server that does not answer at all. */
const QUERY_TIMEOUT_MS = 10_000
const LOCK_TIMEOUT_MS = 5_000
const INT8_OID = 20

/** One pool for reads and writes. */
export function openPostgres(url: string, onLostConnection: (error: Error) => void) {
  const pool = new pg.Pool({
    connectionString: url,
    application_name: 'adit',
    max: POOL_MAX,
    connectionTimeoutMillis: CONNECT_TIMEOUT_MS,
    statement_timeout: STATEMENT_TIMEOUT_MS,
    query_timeout: QUERY_TIMEOUT_MS,
    lock_timeout: LOCK_TIMEOUT_MS,
    idle_in_transaction_session_timeout: QUERY_TIMEOUT_MS,
    keepAlive: true,
    types: {
      // Times fit a number; counters, which may not, are read as text.
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
    },
  })
  pool.on('error', onLostConnection)
  // The pool listens to idle clients only; one that is lost while lent out would end the process.
  pool.on('connect', (client) => client.on('error', onLostConnection))
  const dialect: Dialect = new PostgresDialect({ pool: discarding(pool) })
  return { reader: dialect, writer: dialect }
}

/**
 * A connection on which a query went without an answer is asked nothing more and closed, not lent again: the answer
 * might still come and be taken for the next query's.
 */
function discarding(pool: pg.Pool): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch((error: Error) => {
        throw new Unreachable(error)
      })
      let lost: Error | undefined
      const query = async (text: string, parameters: unknown[]) => {
        if (lost) throw lost
        try {
          return await client.query(text, parameters)
        } catch (error) {
          if (isConnectionLost(error)) lost = error as Error
          throw error
        }
      }
      // Kysely's type also knows cursors, which need a package that is not here.
      return { query: query as unknown as PostgresPoolClient['query'], release: () => client.release(lost) }
    },
  }
}
