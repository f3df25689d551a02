// When keys were last used, gathered in memory and written in batches: a request never waits for it.
import { updateLastUsed } from '../store/keys.ts'
import type { Store } from '../store/store.ts'

/** With the time a write may take, well within the promised 5 s. */
const FLUSH_EVERY_MS = 3_000
const BATCH_MAX = 500

export interface LastUsedTracker {
  record(keyId: string): void
  /** Writes what is pending and stops. What could not be written is counted in the answer. */
  stop(): Promise<{ lost: number }>
}

export function startLastUsedTracker(
  store: Store,
  clock: () => number,
  onFailure: (error: unknown) => void,
): LastUsedTracker {
  let pending = new Map<string, number>()
  let flushing: Promise<void> = Promise.resolve()

  async function flush(): Promise<void> {
    const taken = pending
    pending = new Map()
    // In the order of their ids, so that two nodes writing the same keys seldom wait for each other; if they do, the store
    // tries again.
    const keyIds = [...taken.keys()].sort()
    for (let start = 0; start < keyIds.length; start += BATCH_MAX) {
      const batch = keyIds
        .slice(start, start + BATCH_MAX)
        .map((keyId) => [keyId, taken.get(keyId) ?? 0] as const)
      try {
        await store.transaction((db) => updateLastUsed(db, batch))
      } catch (error) {
        // Kept for the next time, unless the key was used again meanwhile.
        for (const keyId of keyIds.slice(start))
          if (!pending.has(keyId)) pending.set(keyId, taken.get(keyId) ?? 0)
        onFailure(error)
        return
      }
    }
  }

  const timer = setInterval(() => {
    flushing = flushing.then(flush)
  }, FLUSH_EVERY_MS)
  timer.unref()

  return {
    record: (keyId) => pending.set(keyId, clock()),
    async stop() {
      clearInterval(timer)
      await flushing
      await flush()
      return { lost: pending.size }
    },
  }
}
