// A lease: the states of keys that were read earlier may be trusted until it expires, unless it is renewed.

export interface Moment {
  monotonic: number
  wall: number
}

export const EXPIRED: Moment = { monotonic: Number.NEGATIVE_INFINITY, wall: Number.NEGATIVE_INFINITY }

/**
 * A lease is measured on the monotonic clock, which is never set, and on the wall clock: while a machine is
 * suspended, the monotonic clock stops, and others wait no longer than the lease.
 */
export function createLease(clock: () => number) {
  let until = EXPIRED
  return {
    /** The moment that a renewal counts from; take it before asking for the renewal. */
    now: (): Moment => ({ monotonic: performance.now(), wall: clock() }),
    renew({ monotonic, wall }: Moment, ms: number) {
      until = { monotonic: monotonic + ms, wall: wall + ms }
    },
    renewUntil(moment: Moment) {
      until = moment
    },
    end() {
      until = EXPIRED
    },
    isValid: () => performance.now() < until.monotonic && clock() < until.wall,
    until: () => until,
    /** Milliseconds until it expires on the monotonic clock. */
    leftMs: () => until.monotonic - performance.now(),
  }
}
