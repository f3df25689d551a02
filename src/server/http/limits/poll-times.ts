// Times of the last poll of devices that wait for an approval. They are in memory, because a poll without
// news must not write to the database.
import { createLruCache } from '../../../lib/collections/lru-cache.ts'

export const POLL_INTERVAL_S = 5
/** Half of the interval, because a device repeats a poll that seems to have failed. */
const POLL_MIN_MS = (POLL_INTERVAL_S * 1000) / 2
/** A device that is evicted may poll too soon once. */
const POLLING_MAX = 10_000

export function createPollTimes(clock: () => number) {
  const polledAt = createLruCache<number>(POLLING_MAX)
  return {
    isPollTooSoon(deviceCode: string): boolean {
      const now = clock()
      const last = polledAt.get(deviceCode)
      polledAt.set(deviceCode, now)
      return last !== undefined && now >= last && now - last < POLL_MIN_MS
    },
  }
}
