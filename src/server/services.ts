// Opens the database and constructs the services of domain functions. Separate from app.ts, so that admin
// commands do not load a web server.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import { ServerInstruments } from '../lib/metrics/server-instruments.ts'
import { errorMessage, StartupError } from '../lib/startup-error.ts'
import type { Config } from './config/server.ts'
import { writeAudit } from './domain/audit/entries.ts'
import { databaseEntry } from './domain/audit/operator-actions.ts'
import type { Services } from './domain/context.ts'
import { createIds } from './domain/ids.ts'
import { TRAFFIC_LEASE_MS } from './domain/tunnels/edge-sessions.ts'
import { dailyMaximum } from './domain/usage/reports.ts'
import { operatorActor } from './operator.ts'
import { readDatabaseClock } from './store/engine/clock.ts'
import { DatabaseUnreachable } from './store/engine/errors.ts'
import { findRemedy } from './store/engine/postgres/remedies.ts'
import { StorageFault } from './store/engine/storage-fault.ts'
import { type DatabaseTarget, openStore, type Store } from './store/engine/store.ts'
import type { WorkerBus } from './store/engine/worker-bus.ts'
import { IncompatibleSchema, migrate, readSchemaState } from './store/schema/migrate.ts'
import { commitReports } from './store/usage/commit.ts'
import { createShardQueues } from './store/usage/shard-queues.ts'
import { createPropagation } from './verification/propagation.ts'

const WARN_INTERVAL_MS = 5_000

/**
 * Opens the database and migrates its schema. Retries until the timeout while the database is unreachable.
 */
export async function openServices(
  config: Config,
  log: Logger,
  timeoutMs: number,
  workerBus?: WorkerBus,
): Promise<Services> {
  let store: Store | undefined
  try {
    const events = {
      onLostConnection: (error: Error) =>
        log.warn({ reason: errorMessage(error) }, 'database connection lost'),
      onStorageFault: (fault: StorageFault) =>
        log.error({ reason: fault.message }, 'database storage fault: not ready'),
      onStorageRecovered: () => log.info('database storage recovered: ready'),
      onCommitsBlocked: (isBlocked: boolean) =>
        isBlocked
          ? log.error('the database does not confirm commits: writes get 503; check its synchronous standby')
          : log.info('the database confirms commits again'),
    }
    store = openStore(config.database, events, workerBus)
    const services = servicesOn(store, config)
    const newer = await migrate(store, {
      timeoutMs,
      onRetry: warnWhileWaiting(log, timeoutMs),
      onUpgrade: (db, { from, to }) =>
        writeAudit(db, services, databaseEntry(operatorActor(), 'database.migrated', { schema: [from, to] })),
    })
    if (newer)
      log.warn(newer, 'database schema is newer than this version of adit but compatible; update soon')
    return services
  } catch (error) {
    await store?.close()
    const { reason, remedy } = explainDatabaseError(config.database, error)
    throw new StartupError('database', `${reason} ${remedy}`.trimEnd(), error)
  }
}

/** Opens an existing database without creating tables or migrating its schema. */
export async function openUnchanged(target: DatabaseTarget): Promise<Store> {
  const ignore = () => {}
  const store = openStore(target, {
    onLostConnection: ignore,
    onStorageFault: ignore,
    onStorageRecovered: ignore,
  })
  try {
    await readDatabaseClock(store)
    return store
  } catch (error) {
    await store.close()
    throw error
  }
}

/** Opens a database other than that of the services, and changes nothing in it. */
export async function openOther(target: DatabaseTarget): Promise<Store> {
  let store: Store | undefined
  try {
    store = await openUnchanged(target.engine === 'sqlite' ? { ...target, readOnly: true } : target)
    const { version, incompatibility } = await readSchemaState(store.db)
    if (version === 0) throw new Error('It has no tables of Adit.')
    if (incompatibility) throw incompatibility
    return store
  } catch (error) {
    await store?.close()
    const { reason } = explainDatabaseError(target, error)
    const remedy = (error as DatabaseUnreachable).remedy?.replace('ADIT_DATABASE_URL', 'its URL')
    const message = [reason, remedy, 'Nothing was changed.'].filter(Boolean).join(' ')
    throw new StartupError('database', message, error)
  }
}

function servicesOn(store: Store, config: Config): Services {
  const { tunnelDomain, limits, variant, usersCreateWorkspaces } = config
  const clock = Date.now
  const random = (bytes: number) => randomBytes(bytes)
  const edgeDayMax = dailyMaximum(limits.usageLinkGbps)
  const instruments = new ServerInstruments()
  const { usageMerge, propagationWait } = instruments
  const propagation = createPropagation(
    store,
    config.edgeAcknowledgments === 'on' ? TRAFFIC_LEASE_MS : undefined,
  )
  return {
    store,
    clock,
    random,
    ids: createIds(clock, random),
    tunnelDomain,
    limits,
    variant,
    usersCreateWorkspaces,
    hasMail: config.mail !== undefined,
    commitUsage: createShardQueues(store, (reports) =>
      usageMerge.time(commitReports(store, reports, edgeDayMax)),
    ),
    propagation: { ...propagation, wait: (position) => propagationWait.time(propagation.wait(position)) },
    afterChange: () => {},
    instruments,
    afterReport: () => {},
    afterLocations: () => {},
  }
}

function warnWhileWaiting(log: Logger, timeoutMs: number) {
  const startedAt = performance.now()
  let warnedAt = Number.NEGATIVE_INFINITY
  return (error: unknown) => {
    const now = performance.now()
    if (now - warnedAt < WARN_INTERVAL_MS) return
    warnedAt = now
    const secondsLeft = Math.round((startedAt + timeoutMs - now) / 1000)
    log.warn({ reason: errorMessage(error), secondsLeft }, 'waiting for the database')
  }
}

/** The message is for the operator. */
export function explainDatabaseError(
  target: DatabaseTarget,
  error: unknown,
): { reason: string; remedy: string } {
  if (error instanceof IncompatibleSchema) return error
  if (error instanceof StorageFault && error.isDamage && target.engine === 'sqlite')
    return { reason: `${target.path}: ${error.message}`, remedy: '' }
  const reason = errorMessage(error).replace(/\.$/, '')
  if (target.engine === 'sqlite')
    return {
      reason: `Cannot use the SQLite database ${target.path}: ${reason}.`,
      remedy: 'ADIT_DATABASE_URL must name a file on a local disk that this user can write.',
    }
  const remedy = error instanceof DatabaseUnreachable ? error.remedy : findRemedy(error as Error)
  return {
    reason: `Cannot use the PostgreSQL database: ${reason}.`,
    remedy: remedy ?? suggestCheck(reason),
  }
}

/** What to check after an error that may pass. */
function suggestCheck(reason: string): string {
  if (/is a standby/.test(reason)) return 'Promote it, or name the primary in ADIT_DATABASE_URL.'
  if (/ENOTFOUND/.test(reason))
    return 'Check the host in ADIT_DATABASE_URL. In a password, write @ as %40, / as %2F and : as %3A.'
  return 'Check ADIT_DATABASE_URL, and whether the server runs and accepts its user.'
}
