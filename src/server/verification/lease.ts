// The lease of a node. While it is valid, the node may use its cache.

/**
 * A process that has not read the nodes yet waits this long, also for nodes of another version. Before a
 * version makes it longer, an earlier one must wait longer.
 */
export const LEASE_MS = 2_000

interface Lease {
  /** The moment that a renewal counts from; take it before the database is read. */
  now(): Moment
  /** Call it once every change up to that moment is applied and acknowledged. */
  renew(from: Moment): void
  /** Until it is renewed again. */
  end(): void
  isValid(): boolean
  /** Since the moment that it counts from; infinite if it was never renewed or has ended. */
  ageMs(): number
}

interface Moment {
  monotonic: number
  wall: number
}

const EXPIRED: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

/**
 * Measured on the monotonic clock, which is never set. The wall clock is checked as well: on a suspended
 * machine the monotonic clock stops, while revocations on other nodes wait no longer than the lease.
 */
export function createLease(clock: () => number): Lease {
  let until = EXPIRED
  return {
    now: () => ({ monotonic: performance.now(), wall: clock() }),
    renew({ monotonic, wall }) {
      until = { monotonic: monotonic + LEASE_MS, wall: wall + LEASE_MS }
    },
    end() {
      until = EXPIRED
    },
    isValid: () => performance.now() < until.monotonic && clock() < until.wall,
    ageMs: () => performance.now() - until.monotonic + LEASE_MS,
  }
}
