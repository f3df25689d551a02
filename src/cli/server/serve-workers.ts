// `adit serve` with several workers: this process starts them, prints what they have in common, and passes
// signals on.
import type { Logger } from 'pino'
import { flushLog } from '../../lib/log.ts'
import { startMetricsListener } from '../../lib/metrics/listener.ts'
import { listenError } from '../../lib/net/listen-error.ts'
import { listenUrl } from '../../lib/net/listen-url.ts'
import { handleCounterCalls, logMetricsFailure } from '../../server/app/start.ts'
import { workerEnvironment } from '../../server/config/environment.ts'
import type { Config } from '../../server/config/server.ts'
import { openServices } from '../../server/services.ts'
import { combinedMetrics } from '../../workers/combined-metrics.ts'
import { reservePort } from '../../workers/port.ts'
import { startWorkers, type Workers } from '../../workers/primary.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { announce } from './announcement.ts'
import { type LocalEdge, startLocalEdge } from './local-edge.ts'
import { onHangup, onNpmGone, STOP_SIGNALS } from './shutdown.ts'

/** How long to wait for a database that starts at the same time. */
export const DATABASE_TIMEOUT_MS = 60_000

export async function serveWithWorkers(hasEdge: boolean, io: Io, config: Config, log: Logger): Promise<void> {
  const setRestart = onHangup()
  // Migrates the database before the workers open it.
  const services = await openServices(config, log, DATABASE_TIMEOUT_MS)
  if (config.database.engine === 'sqlite') log.info({ path: config.database.path }, 'using SQLite database')
  try {
    const port = await reservePort(config.host, config.port).catch((error) => {
      throw listenError(config, 'ADIT', error)
    })
    const workers = await startWorkers({
      ...config,
      port,
      log,
      environment: workerEnvironment,
      handleCall: handleCounterCalls(),
    }).catch(() => {
      throw new CommandError('worker', 'The first worker exited before it listened; see its error above.')
    })
    let edge: LocalEdge | undefined
    const stop = async () => {
      await edge?.stop()
      workers.stop('SIGTERM')
    }
    for (const name of STOP_SIGNALS) process.on(name, stop)
    setRestart(workers.restart)
    onNpmGone(stop)
    const metrics = await startMetrics(config, workers, log)
    try {
      const localUrl = listenUrl(config.host, workers)
      edge = hasEdge
        ? await startLocalEdge(services, { controlPlaneUrl: localUrl, baseUrl: config.baseUrl }, log)
        : undefined
      const urls = { url: config.baseUrl ?? localUrl, metricsUrl: metrics?.url, edgeUrl: edge?.url }
      await announce(io, config, services, urls)
    } catch (error) {
      await stop()
      throw error
    } finally {
      await workers.exited
      await metrics?.stop()
    }
  } finally {
    await services.store.close()
    await flushLog(log)
  }
}

async function startMetrics({ metrics: address }: Config, workers: Workers, log: Logger) {
  if (!address) return undefined
  try {
    return await startMetricsListener(address, await combinedMetrics(workers.list), logMetricsFailure(log))
  } catch (error) {
    workers.stop('SIGTERM')
    await workers.exited
    throw listenError(address, 'ADIT_METRICS', error)
  }
}
