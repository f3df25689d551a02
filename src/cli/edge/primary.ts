// `adit edge` with several workers: this process starts them, and is the edge to the control plane.
import type { Logger } from 'pino'
import { EdgePrimary } from '../../edge/workers/primary.ts'
import { flushLog } from '../../lib/log.ts'
import { edgeStateMetrics } from '../../lib/metrics/edge-metrics.ts'
import { createRegistry } from '../../lib/metrics/registry.ts'
import { listenUrl } from '../../lib/net/listen-url.ts'
import { probe } from '../../lib/net/listener.ts'
import type { EdgeConfig } from '../../server/config/edge.ts'
import { workerEnvironment } from '../../server/config/environment.ts'
import { combinedMetrics } from '../../workers/combined-metrics.ts'
import { type Port, reservePort } from '../../workers/port.ts'
import { notifyWorker, startWorkers, type Workers } from '../../workers/primary.ts'
import { CommandError } from '../errors.ts'
import type { Io } from '../io.ts'
import { onHangup, STOP_SIGNALS } from '../server/shutdown.ts'
import { withCertificateAdvice } from '../tunnels/certificate-advice.ts'
import { openAccess } from './access.ts'
import { announceEdge, toStartError } from './announcement.ts'
import { logEvents } from './events.ts'
import { startEdgeMetrics } from './metrics.ts'

export async function edgeWithWorkers(
  file: string | undefined,
  io: Io,
  config: EdgeConfig,
  log: Logger,
): Promise<void> {
  const setRestart = onHangup()
  const access = await openAccess(file, config, {
    onNotice: (line) => log.warn(withCertificateAdvice(line)),
    onReady: (url) => log.info(`ready: keys verified by ${url}`),
  })
  let edge: EdgePrimary | undefined
  try {
    const port = await reservePort(config.host, config.port)
    // Another edge on the port must not be replaced at the control plane.
    if (!port) await probe({ host: config.host, port: config.port })
    edge = new EdgePrimary({ ...config, ...access, ...logEvents(log, config), notify: notifyWorker })
    const workers = await startEdgeWorkers(edge, port, config, log)
    const stop = () => {
      edge?.releaseWithWorkers()
      workers.stop('SIGTERM')
    }
    for (const name of STOP_SIGNALS) process.on(name, stop)
    setRestart(workers.restart)
    const metrics = await startMetrics(edge, workers, config, log).catch(async (error) => {
      stop()
      await workers.exited
      throw error
    })
    if (file === undefined) log.info({ folder: config.folder }, 'storing unreported usage')
    announceEdge(io, { url: listenUrl(config.host, workers), metricsUrl: metrics?.url }, access)
    await workers.exited
    await metrics?.stop()
  } catch (error) {
    throw toStartError(error, config)
  } finally {
    await edge?.stop()
    log.info('stopped')
    await flushLog(log)
  }
  process.exit()
}

function startEdgeWorkers(
  edge: EdgePrimary,
  port: Port | undefined,
  { workers, stopDelayS }: EdgeConfig,
  log: Logger,
): Promise<Workers> {
  return startWorkers({
    ...{ workers, stopDelayS, port, log },
    environment: workerEnvironment,
    handleCall: (name, args, { id }) => edge.handleCall(String(id), name, args),
    onNotice: (name, args, { id }) => edge.onNotice(String(id), name, args),
    onGone: ({ id }) => edge.onGone(String(id)),
  }).catch(() => {
    throw new CommandError('worker', 'The first worker exited before it listened; see its error above.')
  })
}

async function startMetrics(edge: EdgePrimary, workers: Workers, { metrics }: EdgeConfig, log: Logger) {
  if (!metrics) return undefined
  const registry = await createRegistry(edgeStateMetrics(edge.metrics))
  const source = await combinedMetrics(workers.list, () => registry.getMetricsAsJSON())
  return startEdgeMetrics(metrics, source, log)
}
