// The lease of a worker: how long it may carry traffic without a heartbeat of the primary.
import type { Moment } from '../../lib/credentials/lease.ts'

/**
 * A worker stops this long after the last heartbeat of its primary, or earlier if the lease of the edge ends.
 */
const WORKER_LEASE_MS = 10_000

/**
 * Milliseconds on a clock of the machine, which all processes read: CLOCK_MONOTONIC on Linux, on macOS and
 * Windows the time since the machine was started. `performance.now()` counts from the start of each process.
 */
const sharedNow = () => Number(process.hrtime.bigint()) / 1e6

/**
 * Converts the lease of the edge to the clock that processes share. The time between the two readings of
 * clocks only shortens it, here and in `receiveLease`.
 */
export function shareLease(edgeUntil: Moment): Moment {
  const shared = sharedNow()
  const own = performance.now()
  return {
    monotonic: shared + Math.min(WORKER_LEASE_MS, edgeUntil.monotonic - own),
    wall: Math.min(Date.now() + WORKER_LEASE_MS, edgeUntil.wall),
  }
}

export function receiveLease({ monotonic, wall }: Moment): Moment {
  const own = performance.now()
  return { monotonic: own + (monotonic - sharedNow()), wall }
}
