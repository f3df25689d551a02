// Asks the workers for their metrics at each scrape.
import cluster, { type Worker } from 'node:cluster'
import { createCombinedMetrics } from '../lib/metrics/combined.ts'
import type { MetricsSource } from '../lib/metrics/listener.ts'
import { isMessage, sendTo } from './messages.ts'

/** How long to wait for a busy worker. Prometheus times out after 10 s by default. */
const TIMEOUT_MS = 3_000

/** `own` returns the metrics of the primary. */
export async function combinedMetrics(
  listening: () => Worker[],
  own?: () => Promise<unknown[]>,
): Promise<MetricsSource> {
  const pending = new Set<Worker>()
  let done = () => {}
  /** The listener makes one request at a time. */
  async function request(): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    done = resolve
    const timer = setTimeout(resolve, TIMEOUT_MS)
    for (const worker of listening()) {
      pending.add(worker)
      sendTo(worker, { kind: 'adit:metrics-request' })
    }
    if (pending.size > 0) await promise
    clearTimeout(timer)
    pending.clear()
  }
  const metrics = await createCombinedMetrics<Worker>(request, own)
  function settle(worker: Worker): void {
    if (pending.delete(worker) && pending.size === 0) done()
  }
  cluster.on('message', (worker, message: unknown) => {
    // Metrics that arrive after the exit would count twice.
    if (!isMessage(message) || message.kind !== 'adit:metrics' || worker.isDead()) return
    metrics.receive(worker, message.metrics)
    settle(worker)
  })
  cluster.on('exit', (worker) => {
    metrics.remove(worker)
    settle(worker)
  })
  return metrics
}
