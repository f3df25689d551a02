// The lease of a node. While it is valid, the node may use its cache.
import { createLease, type Moment } from '../../lib/credentials/lease.ts'

/**
 * A process that has not read the leases of nodes yet waits this long, and nodes may run the next version. So
 * one release must make processes wait longer before another makes leases longer.
 */
export const LEASE_MS = 2_000

export function createNodeLease(clock: () => number) {
  const { now, renew, end, isValid, leftMs } = createLease(clock)
  return {
    now,
    /** Call it once every change up to that moment is applied and acknowledged. */
    renew: (moment: Moment) => renew(moment, LEASE_MS),
    end,
    isValid,
    /**
     * Milliseconds since the moment of the last renewal; infinite if there was none or the lease has ended.
     */
    ageMs: () => LEASE_MS - leftMs(),
  }
}
