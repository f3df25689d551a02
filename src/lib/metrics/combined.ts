// The metrics of several workers as those of one process.
import type { MetricObject } from 'prom-client'
import type { MetricsSource } from './listener.ts'

type Metrics = readonly MetricObject[]

interface CombinedMetrics<W> extends MetricsSource {
  /** Takes the metrics that a worker has sent, as `getMetricsAsJSON` returns them. */
  receive(worker: W, metrics: unknown[]): void
  /** Removes a worker that has exited. Its counts stay in the sum, because counters must not decrease. */
  remove(worker: W): void
}

/** `request` resolves when the workers have responded. A worker that has not counts with its last metrics. */
export async function createCombinedMetrics<W>(
  request: () => Promise<void>,
  /** Metrics of this process. */
  own: () => Promise<unknown[]> = async () => [],
): Promise<CombinedMetrics<W>> {
  const { AggregatorRegistry } = await import('prom-client')
  const latest = new Map<W, Metrics>()
  let exitedWorkers: Metrics = []
  return {
    contentType: AggregatorRegistry.PROMETHEUS_CONTENT_TYPE,
    async metrics() {
      await request()
      const others = (await own()) as Metrics
      return AggregatorRegistry.aggregate([...latest.values(), exitedWorkers, others]).metrics()
    },
    receive(worker, metrics) {
      latest.set(worker, metrics as Metrics)
    },
    remove(worker) {
      const counts = (latest.get(worker) ?? []).filter(({ type }) => String(type) !== 'gauge')
      latest.delete(worker)
      exitedWorkers = AggregatorRegistry.aggregate([exitedWorkers, counts]).getMetricsAsArray()
    },
  }
}
