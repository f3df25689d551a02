// Opens the database and builds the services that domain functions use. Apart from app.ts, so that an operator's command
// does not load a web server.
import { randomBytes } from 'node:crypto'
import type { Logger } from 'pino'
import type { Config } from './config.ts'
import type { Services } from './domain/context.ts'
import { createIds } from './domain/ids.ts'
import { dailyMaxOf } from './domain/reports.ts'
import { errorMessage, StartupError } from './startup-error.ts'
import { migrate, SchemaTooNew } from './store/migrate.ts'
import { StorageFault } from './store/storage-fault.ts'
import { openStore, type Store, type Target } from './store/store.ts'

const SAY_EVERY_MS = 5_000

/** Opens the database and brings its schema up to date; waits that long for a database that cannot answer yet. */
export async function openServices(config: Config, log: Logger, patienceMs: number): Promise<Services> {
  let store: Store | undefined
  try {
    store = openStore(config.database, {
      onLostConnection: (error) => log.warn({ reason: errorMessage(error) }, 'database connection lost'),
      onStorageFault: (fault) => log.error({ reason: fault.message }, 'database storage fault: not ready'),
      onStorageRecovered: () => log.info('database storage recovered: ready'),
    })
    const ahead = await migrate(store, { patienceMs, onWait: sayNowAndThen(log, patienceMs) })
    if (ahead) log.warn(ahead, 'the database is newer than this adit, which can run on it; update it soon')
  } catch (error) {
    await store?.close()
    throw new StartupError('database', explain(config.database, error), error)
  }
  const clock = Date.now
  const random = (bytes: number) => randomBytes(bytes)
  const ids = createIds(clock, random)
  const { tunnelDomain, keysPerWorkspace, usageLinkGbps } = config
  const edgeDayMax = dailyMaxOf(usageLinkGbps)
  return { store, clock, random, ids, tunnelDomain, keysPerWorkspace, edgeDayMax, afterChange: () => {} }
}

function sayNowAndThen(log: Logger, patienceMs: number) {
  const began = performance.now()
  let saidAt = Number.NEGATIVE_INFINITY
  return (error: unknown) => {
    const now = performance.now()
    if (now - saidAt < SAY_EVERY_MS) return
    saidAt = now
    const secondsLeft = Math.round((began + patienceMs - now) / 1000)
    log.warn({ reason: errorMessage(error), secondsLeft }, 'waiting for the database')
  }
}

function explain(target: Target, error: unknown): string {
  if (error instanceof SchemaTooNew) return error.message
  if (error instanceof StorageFault && error.isDamage && target.engine === 'sqlite')
    return `${target.path}: ${error.message}`
  const reason = errorMessage(error).replace(/\.$/, '')
  if (target.engine === 'sqlite')
    return (
      `SQLite cannot use ${target.path}: ${reason}. ` +
      'ADIT_DATABASE_URL must name a file on a local disk that this user can write.'
    )
  if ((error as { code?: string }).code === '3D000')
    return `On that PostgreSQL, ${reason}. Create it with createdb, or mend ADIT_DATABASE_URL.`
  return `PostgreSQL cannot be used: ${reason}. Check ADIT_DATABASE_URL.`
}
