// When devices that wait for an approval have polled, in memory: a poll without news must not write to the
// database.
import { createLruCache } from '../../../lib/lru-cache.ts'

export const POLL_INTERVAL_S = 5
/** Half of the interval: a device may see a poll as failed, and repeat it. */
const POLL_MIN_MS = (POLL_INTERVAL_S * 1000) / 2
/** An eviction costs nothing but a poll that is answered. */
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
