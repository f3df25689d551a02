// The lease of a node. While it is valid, the node may use its cache.

/**
 * A process that has not read the leases of nodes yet waits this long, and nodes may run the next version. So
 * one release must make processes wait longer before another makes leases longer.
 */
export const LEASE_MS = 2_000

export interface Moment {
  monotonic: number
  wall: number
}

export const EXPIRED: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

/**
 * Leases are measured on the monotonic clock, which is never set, and on the wall clock: while a machine is
 * suspended, the monotonic clock stops, and revocations on other nodes wait no longer than the lease.
 */
export function createLease(clock: () => number) {
  let until = EXPIRED
  return {
    /** The moment that a renewal counts from; take it before the database is read. */
    now: (): Moment => ({ monotonic: performance.now(), wall: clock() }),
    /** Call it once every change up to that moment is applied and acknowledged. */
    renew({ monotonic, wall }: Moment) {
      until = { monotonic: monotonic + LEASE_MS, wall: wall + LEASE_MS }
    },
    end() {
      until = EXPIRED
    },
    isValid: () => performance.now() < until.monotonic && clock() < until.wall,
    /**
     * Milliseconds since the moment of the last renewal; infinite if there was none or the lease has ended.
     */
    ageMs: () => performance.now() - until.monotonic + LEASE_MS,
  }
}
