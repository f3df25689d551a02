// The sizes of the queues of emails and webhooks, for metrics.
import { resultWithin } from '../directory/propagation-wait.ts'
import { type QueueSizes, readQueueSizes } from '../store/queue-sizes.ts'
import type { Services } from './context.ts'

/** A scrape must not wait for a database that does not respond. */
const TIMEOUT_MS = 1_000

export type { QueueSizes }

/** Calls at the same time share the queries. The result is undefined if the database does not respond. */
export function queueSizeReader({ store }: Pick<Services, 'store'>): () => Promise<QueueSizes | undefined> {
  let pending: Promise<QueueSizes | undefined> | undefined
  return () => {
    pending ??= resultWithin(TIMEOUT_MS, readQueueSizes(store.db)).finally(() => {
      pending = undefined
    })
    return pending
  }
}
