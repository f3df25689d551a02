// Kysely on node-postgres. Every wait has a timeout, and no connection error can crash the process.
import { createHash, randomBytes } from 'node:crypto'
import {
  CompiledQuery,
  PostgresDialect,
  type PostgresPool,
  type PostgresPoolClient,
  type SqlBool,
  sql,
} from 'kysely'
import pg from 'pg'
import type { Dialects, Engine } from '../dialects.ts'
import {
  CommitsBlocked,
  CommitUnconfirmed,
  DatabaseUnreachable,
  isConnectionLost,
  isNotPrepared,
} from '../errors.ts'
import type { StorageHealth } from '../storage-fault.ts'
import { type CommitGate, createCommitGate } from './commit-gate.ts'
import { type ClientPool, createReplaceablePool } from './replaceable-pool.ts'

/** Options of the pool for requests. */
export const POOL_OPTIONS = {
  max: 10,
  connectionTimeoutMillis: 3_000,
  statement_timeout: 8_000,
  /** Longer than the server's own timeout: it applies only if the server does not respond at all. */
  query_timeout: 10_000,
  lock_timeout: 5_000,
  /** A client that disappears or stalls in a transaction would block others on its locks. */
  idle_in_transaction_session_timeout: 1_500,
}

/** The server's statement timeout does not apply to the wait for a synchronous standby. */
const COMMIT_TIMEOUT_MS = 5_000

/** The control connection has short timeouts, because an outage must be detected within a lease. */
const CONTROL_OPTIONS = {
  application_name: 'adit control',
  max: 1,
  idleTimeoutMillis: 0,
  connectionTimeoutMillis: 1_000,
  statement_timeout: 800,
  lock_timeout: 500,
  idle_in_transaction_session_timeout: 1_000,
}

/** Longer than the server's own statement timeout. */
const CONTROL_QUERY_TIMEOUT_MS = 1_000

/**
 * The guarantee of revocation needs durable commits, which the role or the database may have turned off;
 * other values are the operator's choice. JIT is off, because compiling takes longer than any of our
 * statements.
 */
const ON_CONNECT = {
  text: `select pg_is_in_recovery() as standby,
    case current_setting('synchronous_commit') when 'off'
      then set_config('synchronous_commit', 'on', false) end, set_config('jit', 'off', false)`,
  query_timeout: 1_000,
}
/** Ends sessions that are idle or wait for a lock, but not active ones: their clients may be connected. */
const END_SESSIONS = `
  select pg_terminate_backend(pid) from pg_stat_activity
  where application_name = any($1) and (state like 'idle%' or wait_event_type = 'Lock')
    and state_change < now() - interval '500 milliseconds'`
const CHANNEL = 'adit_feed'
/** The statements that Kysely sends. */
const BEGIN = 'begin'
const COMMIT = 'commit'
const INT8_OID = 20

/**
 * A condition that is always true, and lets the commit of a single-statement transaction return before it is
 * on disk. The setting ends with the transaction, because a pooler may then give the session to another
 * client.
 */
const withoutFlush = `set_config('synchronous_commit', 'off', true) = 'off'`
export const WITHOUT_FLUSH = sql.raw<SqlBool>(withoutFlush)

/** Names of prepared statements by their text. */
const preparedNames = new Map<string, string>()

/**
 * Makes connections prepare statements with this text. The name is derived from the text, so that versions of
 * Adit that share a connection through a pooler agree on it.
 */
export function prepareOnPostgres(text: string): void {
  preparedNames.set(text, `adit ${createHash('sha256').update(text).digest('base64url')}`)
}

const NOTIFY = `select pg_notify('${CHANNEL}', $1) where ${withoutFlush}`
prepareOnPostgres(NOTIFY)

interface PostgresEvents {
  onLostConnection: (error: Error) => void
  /** This or another process called `notify`. */
  onNotify: (payload: string) => void
  /** Commits hang, or no longer do. */
  onCommitsBlocked: (isBlocked: boolean) => void
}

/**
 * A pool for requests, and a separate control connection. The control connection is queried several times a
 * second, so it is the first to detect an outage. Pool connections may be dead too, which a request would
 * only find out by timing out. So the pool is replaced when the control connection is lost, and when it is
 * back.
 */
export function openPostgres(url: string, events: PostgresEvents, health: StorageHealth): Engine {
  /** Application names of the current pool and of replaced pools whose sessions may still exist. */
  let names: string[] = []
  const pool = createReplaceablePool(() => {
    const name = `adit ${randomBytes(6).toString('hex')}`
    names.push(name)
    return openPool(url, { ...POOL_OPTIONS, application_name: name }, events)
  })
  const gate = createCommitGate((options) => openPool(url, options, events), events.onCommitsBlocked)
  const control = openPool(url, CONTROL_OPTIONS, events)
  control.on('connect', (client) => {
    client.on('notification', ({ payload = '' }) => events.onNotify(payload))
    // Queued before any other query, so that no notification is missed. Not every database and pooler
    // supports LISTEN; without it, polling suffices.
    client.query(`listen ${CHANNEL}`).catch(() => {})
  })

  let isLost = false
  function onControlResult(lost: boolean): void {
    if (lost === isLost) return
    isLost = lost
    pool.replace()
    gate.resetProbe()
    if (lost) return
    // The server does not know that connections of the replaced pool are dead. Their transactions would hold
    // locks until the server's timeout.
    control.query(END_SESSIONS, [names.slice(0, -1)]).catch(() => {})
    names = names.slice(-1)
  }

  const dialectsOn = (pool: PostgresPool, runTransaction: CommitGate['run']): Dialects => {
    const dialect = new PostgresDialect({ pool })
    return { reader: dialect, writer: dialect, runTransaction }
  }
  return {
    main: dialectsOn(discardBroken(pool, health, gate), gate.run),
    control: dialectsOn(
      discardBroken(control, health, gate, {
        onResult: onControlResult,
        queryTimeoutMs: CONTROL_QUERY_TIMEOUT_MS,
      }),
      gate.runUnlimited,
    ),
    poolUse() {
      const use = pool.use()
      return { ...use, waiting: use.waiting + gate.waiting() }
    },
    confirmCommit: gate.confirmCommit,
    areCommitsBlocked: gate.isBlocked,
    notification: (payload) => CompiledQuery.raw(NOTIFY, [payload]),
    close: gate.close,
  }
}

function openPool(url: string, options: pg.PoolConfig, { onLostConnection }: PostgresEvents): pg.Pool {
  const pool = new pg.Pool({
    connectionString: url,
    ...options,
    keepAlive: true,
    onConnect: prepareSession,
    types: {
      // Times fit a number; counters may not, and are read as text.
      getTypeParser: (oid: number, format?: 'text' | 'binary') =>
        oid === INT8_OID ? Number : pg.types.getTypeParser(oid, format as 'text'),
    },
  })
  pool.on('error', onLostConnection)
  // The pool handles errors of idle clients only; an unhandled error of a checked-out client would crash the
  // process.
  pool.on('connect', (client) => client.on('error', onLostConnection))
  return pool
}

/** Rejects a standby: it lags behind, and would accept a key that was revoked on the primary. */
async function prepareSession(client: pg.ClientBase): Promise<void> {
  // The connection timeout does not cover this query, so it has its own.
  const { rows } = await client.query(ON_CONNECT)
  if (rows[0]?.standby) throw new Error('the server is a standby that has not been promoted')
}

interface DiscardOptions {
  /** Called after each query. */
  onResult?: (lost: boolean) => void
  /**
   * Replaces the driver's timeout, which also fires while this process is too busy to read a response that
   * arrived.
   */
  queryTimeoutMs?: number
}

/**
 * Closes a connection after a query without a response instead of returning it to the pool: a late response
 * could be taken for that of the next query.
 */
function discardBroken(
  pool: ClientPool,
  health: StorageHealth,
  gate: CommitGate,
  { onResult, queryTimeoutMs }: DiscardOptions = {},
): PostgresPool {
  let isPreparing = true
  async function send(client: pg.PoolClient, text: string, values: unknown[]): Promise<pg.QueryResult> {
    const name = isPreparing ? preparedNames.get(text) : undefined
    const pending = name ? client.query({ name, text, values }) : client.query(text, values)
    const timeoutMs = queryTimeoutMs ?? (text === COMMIT ? COMMIT_TIMEOUT_MS : undefined)
    try {
      return await (timeoutMs ? withTimeout(timeoutMs, pending) : pending)
    } catch (error) {
      if (!isNotPrepared(error)) throw error
      isPreparing = false
      // In a transaction, which the error has ended, this fails again: a conflict, so the transaction is
      // retried.
      return send(client, text, values).catch(() => {
        throw error
      })
    }
  }
  return {
    options: pool.options,
    end: () => pool.end(),
    async connect() {
      const client = await pool.connect().catch((error: Error) => {
        onResult?.(true)
        throw new DatabaseUnreachable(error)
      })
      let lost: Error | undefined
      const query = async (text: string, parameters: unknown[]) => {
        if (lost) throw lost
        try {
          if (text === BEGIN) gate.watchTransaction(client)
          const pending = send(client, text, parameters)
          const result = await (text === COMMIT ? gate.awaitCommit(client, pending) : pending)
          onResult?.(false)
          return result
        } catch (caught) {
          const error = gate.isAborted(client) ? new CommitsBlocked() : caught
          const isLost = isConnectionLost(error)
          if (isLost || error instanceof CommitsBlocked || error instanceof CommitUnconfirmed)
            lost = error as Error
          if (isLost) onResult?.(true)
          throw health.record(error)
        }
      }
      const release = () => {
        gate.unwatch(client)
        client.release(lost)
      }
      // Kysely's type also includes cursors, which need a package that is not installed.
      return { query: query as unknown as PostgresPoolClient['query'], release }
    },
  }
}

/** On timeout, data that is already in the socket is read first: an immediate runs after that. */
async function withTimeout<T>(ms: number, pending: Promise<T>): Promise<T> {
  const { promise: timeout, reject } = Promise.withResolvers<never>()
  const timer = setTimeout(() => setImmediate(reject, new Error('Query read timeout')), ms)
  try {
    return await Promise.race([pending, timeout])
  } finally {
    clearTimeout(timer)
    pending.catch(() => {})
  }
}
