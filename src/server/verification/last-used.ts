// Collects in memory when keys were last used, and writes it in batches, so that no request waits for that.
import { createOutageReporter, type OutageEvents } from '../../lib/outage.ts'
import type { Store } from '../store/engine/store.ts'
import { updateLastUsed } from '../store/keys/rows.ts'

/** Leaves time for the write within the documented 5 s. */
const FLUSH_INTERVAL_MS = 3_000
const BATCH_MAX = 500

export interface LastUsedTracker {
  record(keyId: string): void
  /** Flushes and stops. Returns the number of keys that could not be written. */
  stop(): Promise<{ lost: number }>
}

export function startLastUsedTracker(
  store: Store,
  clock: () => number,
  events: OutageEvents,
): LastUsedTracker {
  let pending = new Map<string, number>()
  let flushing: Promise<void> = Promise.resolve()
  let isStopping = false
  const outages = createOutageReporter(events, () => isStopping)

  async function flush(): Promise<void> {
    const uses = pending
    pending = new Map()
    // Sorted, so that nodes that write the same keys rarely deadlock; the store retries if they do.
    const keyIds = [...uses.keys()].sort()
    for (let start = 0; start < keyIds.length; start += BATCH_MAX) {
      const batch = keyIds
        .slice(start, start + BATCH_MAX)
        .map((keyId) => [keyId, uses.get(keyId) ?? 0] as const)
      try {
        await store.transaction((db) => updateLastUsed(db, batch))
      } catch (error) {
        // The next flush retries them, with the later time of keys that were used again.
        for (const keyId of keyIds.slice(start))
          if (!pending.has(keyId)) pending.set(keyId, uses.get(keyId) ?? 0)
        throw error
      }
    }
  }

  const timer = setInterval(() => {
    flushing = flushing.then(() => outages.observe(flush()))
  }, FLUSH_INTERVAL_MS)
  timer.unref()

  return {
    record: (keyId) => pending.set(keyId, clock()),
    async stop() {
      isStopping = true
      clearInterval(timer)
      await flushing
      await outages.observe(flush())
      return { lost: pending.size }
    },
  }
}
