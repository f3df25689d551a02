// When an edge reports next: at its own interval, or later if the control plane asks for that.

/**
 * What the control plane asks for while it keeps up, and what earlier versions mean by asking for nothing.
 */
export const USUAL_WAIT_S = 5
/** A faulty control plane cannot delay reports for longer. */
const WAIT_MAX_S = 300
/** So that edges that were cut off together do not report simultaneously ever after. */
const JITTER = 0.1

/** `waitS` is what the control plane asks for; up to the usual value, the edge's own interval applies. */
export function reportDelayMs(everyMs: number, waitS: number, random: () => number = Math.random): number {
  const ms = waitS > USUAL_WAIT_S ? Math.max(everyMs, Math.min(waitS, WAIT_MAX_S) * 1000) : everyMs
  return ms * (1 + JITTER * (2 * random() - 1))
}
