// The metrics listener of an edge.
import type { Logger } from 'pino'
import { type MetricsListener, type MetricsSource, startMetricsListener } from '../../lib/metrics/listener.ts'
import { type ListenAddress, listenError } from '../../lib/net/listen-error.ts'

export async function startEdgeMetrics(
  address: ListenAddress,
  source: MetricsSource,
  log: Logger,
): Promise<MetricsListener> {
  const listener = await startMetricsListener(address, source, (error) =>
    log.error({ err: error }, 'failed to collect metrics'),
  ).catch((error) => {
    throw listenError(address, 'ADIT_METRICS', error)
  })
  log.info({ url: listener.url }, 'metrics listening')
  return listener
}
