// For how long this node may answer from memory.
import { LEASE_MS } from '../domain/propagation.ts'

export interface Lease {
  /** A moment to count from: taken before the database is asked. */
  begin(): Moment
  /** To be called once everything up to that moment is known, and known to be known. */
  renew(from: Moment): void
  isTrusted(): boolean
}

export interface Moment {
  monotonic: number
  wall: number
}

/**
 * Counted on the monotonic clock, which nobody sets. The one on the wall is asked as well: where a machine was suspended,
 * the monotonic clock stood still, and others waited only as long as they believed this lease to last.
 */
export function createLease(clock: () => number): Lease {
  let until: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }
  return {
    begin: () => ({ monotonic: performance.now(), wall: clock() }),
    renew({ monotonic, wall }) {
      until = { monotonic: monotonic + LEASE_MS, wall: wall + LEASE_MS }
    },
    isTrusted: () => performance.now() < until.monotonic && clock() < until.wall,
  }
}
