// Kysely on node-postgres, with every wait bounded and no connection error left to kill the process.
import { randomBytes } from 'node:crypto'
import { PostgresDialect, type PostgresPool, type PostgresPoolClient } from 'kysely'
import pg from 'pg'
import { DatabaseUnreachable, isConnectionLost } from './db-errors.ts'
import type { Ends, Engine } from './engine.ts'
import { type ClientPool, createReplaceablePool } from './replaceable-pool.ts'
import type { StorageHealth } from './storage-fault.ts'

/** For requests. */
const POOL_LIMITS = {
  max: 10,
  connectionTimeoutMillis: 3_000,
  statement_timeout: 8_000,
  /** Longer than the server's own limit: it only ends the wait for a server that does not answer at all. */
  query_timeout: 10_000,
  lock_timeout: 5_000,
  /** Whoever is lost, or stands still, in the middle of a transaction holds locks that others wait for. */
  idle_in_transaction_session_timeout: 1_500,
}

/** For the line: what it asks takes a millisecond, and its silence must be noticed within a lease. */
const LINE_LIMITS = {
  application_name: 'adit line',
  max: 1,
  idleTimeoutMillis: 0,
  connectionTimeoutMillis: 1_000,
  statement_timeout: 800,
  lock_timeout: 500,
  idle_in_transaction_session_timeout: 1_000,
}

/** Longer than the server's own limit on the line. */
const LINE_PATIENCE_MS = 1_000

const IS_STANDBY = { text: 'select pg_is_in_recovery() as standby', query_timeout: 1_000 }
/** What stands still or waits for a lock. Whatever is at work may yet find out that somebody waits for its answer. */
const END_SESSIONS = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where application_name = any($1) and (state like 'idle%' or wait_event_type = 'Lock')
    and state_change < now() - interval '500 milliseconds'`
const CHANNEL = 'adit_feed'
const INT8_OID = 20

export interface PostgresEvents {
  onLostConnection: (error: Error) => void
  /** Another process says that there is something new. */
  onRing: () => void
}

/**
 * A pool for requests, and one connection of its own, the line, that no request can crowd out. The line is asked several
 * times a second, so it is the first to know when the way to the database is lost. The pool's connections are suspects
 * then, even those that look healthy: one that leads nowhere would be found out only by a request that waits in vain. So
 * the pool is exchanged for a fresh one, when the line is lost and again when it is back.
 */
export function openPostgres(url: string, events: PostgresEvents, health: StorageHealth): Engine {
  /** Of the pool, and of those before it whose sessions may still be there. */
  let names: string[] = []
  const pool = createReplaceablePool(() => {
    const name = `adit ${randomBytes(6).toString('hex')}`
    names.push(name)
    return openPool(url, { ...POOL_LIMITS, application_name: name }, events)
  })
  const line = openPool(url, LINE_LIMITS, events)
  line.on('connect', (client) => {
    client.on('notification', events.onRing)
    // Ahead of whatever is asked next, so nothing falls between. Not every database and pooler knows it; then the poll
    // is all there is, and enough.
    client.query(`listen ${CHANNEL}`).catch(() => {})
  })

  let isLost = false
  function judgeLine(lost: boolean): void {
    if (lost === isLost) return
    isLost = lost
    pool.replace()
    if (lost) return
    // Where connections were lost without being closed, the server does not know that nobody is there any more. Each of
    // their transactions would hold its locks until its time is up, and so would the next that waited for them.
    line.query(END_SESSIONS, [names.slice(0, -1)]).catch(() => {})
    names = names.slice(-1)
  }

  const dialectOf = (way: PostgresPool): Ends => {
    const dialect = new PostgresDialect({ pool: way })
    return { reader: dialect, writer: dialect }
  }
  return {
    main: dialectOf(discarding(pool, health)),
    line: dialectOf(discarding(line, health, { judge: judgeLine, patienceMs: LINE_PATIENCE_MS })),
    ring: `notify ${CHANNEL}`,
  }
}

function openPool(url: string, limits: pg.PoolConfig, { onLostConnection }: PostgresEvents): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    ...limits,
    keepAlive: true,
    onConnect: requirePrimary,
    types: {
      // Times fit a number; counters, which may not, are read as text.
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
    },
  })
  pool.on('error', onLostConnection)
  // The pool listens to idle clients only; one that is lost while lent out would end the process.
  pool.on('connect', (client) => client.on('error', onLostConnection))
  return pool
}

/** A standby lags behind: it would call a key good that was revoked on the primary. */
async function requirePrimary(client: pg.ClientBase): Promise<void> {
  // The time to connect does not include it, so it has a limit of its own.
  const { rows } = await client.query(IS_STANDBY)
  if (rows[0]?.standby) throw new Error('the server is a standby, and not promoted yet')
}

interface Discarding {
  judge?: (lost: boolean) => void
  /** Instead of a limit of the driver, whose clock also runs while this process is too busy to read what has arrived. */
  patienceMs?: number
}

/**
 * A connection on which a query went without an answer is asked nothing more and closed, not lent again: the answer
 * might still come and be taken for the next query's. `judge` is told after each query whether it was so.
 */
function discarding(
  pool: ClientPool,
  health: StorageHealth,
  { judge, patienceMs }: Discarding = {},
): PostgresPool {
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch((error: Error) => {
        judge?.(true)
        throw new DatabaseUnreachable(error)
      })
      let lost: Error | undefined
      const query = async (text: string, parameters: unknown[]) => {
        if (lost) throw lost
        try {
          const asked = client.query(text, parameters)
          const answer = await (patienceMs ? answeredWithin(patienceMs, asked) : asked)
          judge?.(false)
          return answer
        } catch (error) {
          if (isConnectionLost(error)) {
            lost = error as Error
            judge?.(true)
          }
          throw health.record(error)
        }
      }
      // Kysely's type also knows cursors, which need a package that is not here.
      return { query: query as unknown as PostgresPoolClient['query'], release: () => client.release(lost) }
    },
  }
}

/** When time is up, whatever lies in the socket is read first: an immediate comes after that. */
async function answeredWithin<T>(ms: number, asked: Promise<T>): Promise<T> {
  const { promise: silence, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(reject, new Error('Query read timeout')), ms)
  try {
    return await Promise.race([asked, silence])
  } finally {
    clearTimeout(timer)
    asked.catch(() => {})
  }
}
