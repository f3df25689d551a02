// When an edge reports next: at its interval, or later if the control plane is overloaded.

/** A faulty control plane must not stop reports. */
const RETRY_AFTER_MAX_S = 300
/** Jitter: edges that were cut off together must not keep reporting at the same time. */
const JITTER = 0.1

/** `retryAfterS` comes from the response to a rejected report, and is the minimum. */
export function reportDelayMs(everyMs: number, retryAfterS = 0, random: () => number = Math.random): number {
  const chance = random()
  const retryAfterMs = Math.min(retryAfterS, RETRY_AFTER_MAX_S) * 1000
  return Math.max(everyMs * (1 + JITTER * (2 * chance - 1)), retryAfterMs * (1 + JITTER * chance))
}
