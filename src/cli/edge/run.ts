// `adit edge`: runs a tunnel edge, with keys from a control plane or from a tokens file, in this process or
// in several workers.
import type { Logger } from 'pino'
import { startEdge } from '../../edge/start.ts'
import { createLog, flushLog } from '../../lib/log.ts'
import { edgeMetrics } from '../../lib/metrics/edge-metrics.ts'
import { createRegistry } from '../../lib/metrics/registry.ts'
import type { ListenAddress } from '../../lib/net/listen-error.ts'
import { type EdgeConfig, readEdgeConfig } from '../../server/config/edge.ts'
import { inheritedDescriptors, unknownSettings } from '../../server/config/environment.ts'
import { version } from '../../server/config/server.ts'
import { connectToPrimary } from '../../workers/worker.ts'
import type { Io } from '../io.ts'
import { awaitShutdown } from '../server/shutdown.ts'
import { withCertificateAdvice } from '../tunnels/certificate-advice.ts'
import { openAccess } from './access.ts'
import { announceEdge, toStartError } from './announcement.ts'
import { logEvents } from './events.ts'
import { startEdgeMetrics } from './metrics.ts'
import { edgeWithWorkers } from './primary.ts'
import { edgeAsWorker } from './worker.ts'

export async function edge(input: { 'tokens-file': string | undefined }, io: Io): Promise<void> {
  const config = readEdgeConfig()
  const log = createLog(config.logLevel)
  const file = input['tokens-file']
  const primary = connectToPrimary(inheritedDescriptors())
  if (primary) return edgeAsWorker(file, config, log, primary)
  warnAboutSettings(file, config, log)
  // `adit serve --edge` starts this process with a channel, which closes if it is killed.
  process.once('disconnect', () => process.kill(process.pid, 'SIGTERM'))
  process.channel?.unref()
  if (config.workers > 1) return edgeWithWorkers(file, io, config, log)
  const { stopDelayS } = config
  const shutdown = awaitShutdown(stopDelayS)
  const access = await openAccess(file, config, {
    onNotice: (line) => log.warn(withCertificateAdvice(line)),
    onReady: (url) => log.info(`ready: keys verified by ${url}`),
  })
  const {
    url,
    metrics: sources,
    announceStop,
    stop,
  } = await startEdge({ ...config, ...access, ...logEvents(log, config) }).catch((error) => {
    throw toStartError(error, config)
  })
  const metrics =
    config.metrics &&
    (await createRegistry(edgeMetrics({ version, ...sources }))
      .then((registry) => startEdgeMetrics(config.metrics as ListenAddress, registry, log))
      .catch(async (error) => {
        await stop()
        throw error
      }))
  if (file === undefined) log.info({ folder: config.folder }, 'storing unreported usage')
  announceEdge(io, { url, metricsUrl: metrics?.url }, access)
  const reason = await shutdown.requested
  if (stopDelayS > 0) {
    announceStop()
    log.info({ reason, stopDelayS }, 'draining: /.adit/ready now returns 503')
    await shutdown.due
  }
  log.info({ reason }, 'stopping: completing open requests, closing tunnels')
  await stop()
  await metrics?.stop()
  log.info('stopped')
  await flushLog(log)
  process.exit()
}

function warnAboutSettings(file: string | undefined, config: EdgeConfig, log: Logger): void {
  const unknown = unknownSettings()
  if (unknown.length > 0) log.warn({ unknown }, 'unknown ADIT_ variables ignored')
  if (file === undefined && config.tcpPorts.range)
    log.warn('ADIT_EDGE_TCP_PORTS ignored: the control plane assigns ports, from its ADIT_TCP_PORTS')
  if (file !== undefined && config.peerListener)
    log.warn('ADIT_EDGE_PEER_PORT ignored: without a control plane, an edge has no peers')
}
