// One of several workers of `adit edge`.
import type { Logger } from 'pino'
import { startEdge } from '../../edge/start.ts'
import { PrimaryConnection } from '../../edge/workers/connection.ts'
import { flushLog } from '../../lib/log.ts'
import { edgeTrafficMetrics } from '../../lib/metrics/edge-metrics.ts'
import { createRegistry } from '../../lib/metrics/registry.ts'
import type { EdgeConfig } from '../../server/config/edge.ts'
import { version } from '../../server/config/server.ts'
import type { Primary } from '../../workers/worker.ts'
import { awaitShutdown } from '../server/shutdown.ts'
import { toStartError } from './announcement.ts'
import { logEvents } from './events.ts'

export async function edgeAsWorker(
  file: string | undefined,
  config: EdgeConfig,
  log: Logger,
  primary: Primary,
): Promise<void> {
  const shutdown = awaitShutdown(config.stopDelayS, ['SIGTERM'])
  const hasControlPlane = file === undefined
  const connection = new PrimaryConnection(primary.id, primary, hasControlPlane && !!config.peerListener)
  const running = await startEdge({
    ...config,
    ...logEvents(log, config),
    startVerifier: (callbacks) => connection.startVerifier(callbacks),
    startReporter: (callbacks) => connection.startReporter(callbacks),
    meter: hasControlPlane ? connection.meter : undefined,
    localPorts: undefined,
    worker: { sockets: primary.sockets, primary: connection, socketPath: await connection.socketPath() },
  }).catch((error) => {
    throw toStartError(error, config)
  })
  primary.announceListening(Number(new URL(running.url).port))
  if (config.metrics) {
    const registry = await createRegistry(edgeTrafficMetrics({ version, ...running.metrics }))
    primary.offerMetrics(() => registry.getMetricsAsJSON())
  }
  const reason = await Promise.race([shutdown.requested, primary.replaced])
  if (reason !== 'replaced' && config.stopDelayS > 0) {
    running.announceStop()
    await shutdown.due
  }
  log.info({ reason }, 'stopping: completing open requests, closing tunnels')
  await running.stop(reason === 'replaced' ? 'replaced' : undefined)
  await connection.meter.stop()
  await primary.sendLastMetrics()
  log.info('stopped')
  await flushLog(log)
  process.exit()
}
