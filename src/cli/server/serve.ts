// `adit serve`: runs the control plane, in this process or in several workers.
import type { Logger } from 'pino'
import { createLog, flushLog } from '../../lib/log.ts'
import { type Running, startServer } from '../../server/app/start.ts'
import { inheritedDescriptors, unknownSettings } from '../../server/config/environment.ts'
import { type Config, readConfig } from '../../server/config/server.ts'
import { openServices } from '../../server/services.ts'
import { requireSecret } from '../../server/session-secret.ts'
import { connectToPrimary, type Primary } from '../../workers/worker.ts'
import type { Io } from '../io.ts'
import { announce } from './announcement.ts'
import { type LocalEdge, startLocalEdge } from './local-edge.ts'
import { DATABASE_TIMEOUT_MS, serveWithWorkers } from './serve-workers.ts'
import { awaitShutdown, type Shutdown } from './shutdown.ts'

const EXIT_TIMEOUT_MS = 500
/** Loading sign-in blocks the event loop, so it follows the start and the requests that wait for it. */
const LOAD_SIGN_IN_DELAY_MS = 3_000

export async function serve(hasEdge: boolean, io: Io): Promise<void> {
  const config = readConfig()
  requireSecret(config)
  const log = createLog(config.logLevel)
  const primary = connectToPrimary(inheritedDescriptors())
  if (primary) return serveAsWorker(config, log, primary)
  const unknown = unknownSettings()
  if (unknown.length > 0) log.warn({ unknown }, 'unknown ADIT_ variables ignored')
  if (config.workers > 1) return serveWithWorkers(hasEdge, io, config, log)
  const services = await openServices(config, log, DATABASE_TIMEOUT_MS)
  if (config.database.engine === 'sqlite') log.info({ path: config.database.path }, 'using SQLite database')
  const shutdown = awaitShutdown(config.stopDelayS)
  const running = await startServer(config, services, log)
  const { metricsUrl } = running
  if (metricsUrl) log.info({ url: metricsUrl }, 'metrics listening')
  let edge: LocalEdge | undefined
  const stopEdge = async () => edge?.stop()
  await runUntil(shutdown, { config, log, running, stopEdge }, async () => {
    if (hasEdge)
      edge = await startLocalEdge(services, { controlPlaneUrl: running.url, baseUrl: config.baseUrl }, log)
    const url = config.baseUrl ?? running.url
    await announce(io, config, services, { url, metricsUrl, edgeUrl: edge?.url })
  })
}

/** The primary prints what all workers have in common. */
async function serveAsWorker(config: Config, log: Logger, primary: Primary): Promise<void> {
  try {
    const services = await openServices(config, log, DATABASE_TIMEOUT_MS, primary)
    const shutdown = awaitShutdown(config.stopDelayS, ['SIGTERM'])
    const running = await startServer(config, services, log, primary)
    await runUntil(shutdown, { config, log, running, replaced: primary.replaced })
  } finally {
    primary.release()
  }
}

const NEVER = new Promise<never>(() => {})

interface Serving {
  config: Config
  log: Logger
  running: Running
  /** Stops the edge that this server has started. */
  stopEdge?: () => Promise<void>
  /** Resolves if this is a worker and another listens in its place. */
  replaced?: Promise<'replaced'>
}

async function runUntil(
  shutdown: Shutdown,
  { config, log, running, stopEdge, replaced = NEVER }: Serving,
  onStarted = async () => {},
): Promise<void> {
  const { stopDelayS } = config
  const loading = setTimeout(() => {
    const start = performance.now()
    running.loadSignIn().then(
      () => log.debug({ ms: Math.round(performance.now() - start) }, 'sign-in loaded'),
      (error) => log.error({ err: error }, 'failed to load sign-in'),
    )
  }, LOAD_SIGN_IN_DELAY_MS).unref()
  try {
    await onStarted()
    const reason = await Promise.race([shutdown.requested, replaced])
    if (reason === 'replaced') running.announceReplacement()
    else {
      running.announceStop()
      if (stopDelayS > 0) log.info({ reason, stopDelayS }, 'draining: /readyz now returns 503')
      await shutdown.due
    }
    log.info({ reason }, 'stopping: completing open requests')
  } finally {
    clearTimeout(loading)
    await stopEdge?.()
    await running.stop()
    log.info('stopped')
    await flushLog(log)
  }
  // Do not wait for handles that are still open, such as a connection to a database that does not respond.
  setTimeout(() => process.exit(), EXIT_TIMEOUT_MS).unref()
}
