// Metrics that are read from the database: the sizes of queues, the last backup, and the use of ports.

import { type QueueSizes, readQueueSizes } from '../../store/maintenance/queue-sizes.ts'
import { readLastBackup } from '../../store/maintenance/state.ts'
import { resultWithin } from '../../verification/propagation-wait.ts'
import type { Services } from '../context.ts'
import { readPortUse } from '../tunnels/operator-ports.ts'

/** A scrape must not wait for a database that does not respond. */
const TIMEOUT_MS = 1_000

export type { QueueSizes }

export const queueSizeReader = ({ store }: Services) => shared(() => readQueueSizes(store.db))

export const lastBackupReader = ({ store }: Services) => shared(() => readLastBackup(store))

export const portUseReader = (services: Services) => shared(() => readPortUse(services))

/** Concurrent calls share one read. Undefined if the database does not respond. */
function shared<T>(read: () => Promise<T>): () => Promise<T | undefined> {
  let pending: Promise<T | undefined> | undefined
  return () => {
    pending ??= resultWithin(TIMEOUT_MS, read()).finally(() => {
      pending = undefined
    })
    return pending
  }
}
