// Limits what one user, one key and the keys of one workspace write. Each write adds rows that are kept for
// long (audit log, keys), so the sustained rate bounds how fast a single caller can fill the disk.

import { HOUR_MS } from '../../../lib/time.ts'
import { type Bucket, TokenBuckets } from '../../../lib/token-buckets.ts'
import { formatDuration } from '../../domain/duration.ts'
import { Fault } from '../../domain/fault.ts'
import { type MaybePromise, thenMaybe } from '../../verification/verify.ts'
import { createCallerQueue } from './caller-queue.ts'

/**
 * Key creation is also limited per workspace: each key that a key creates has a limit of its own. The factor
 * multiplies the burst, not the rate.
 */
const WORKSPACE_FACTOR = 3

/** Writes of a caller in progress. Each needs a connection to the database, of which a node has 10. */
const RUNNING_MAX = 4
/**
 * The lock timeout of the database: if a lock blocks the running writes, the waiting ones would fail, too.
 */
const WAIT_MS = 5_000

/** The writes of an hour may arrive in one burst, as those of scripts do. */
export function createWriteLimits(
  perHour: number,
  { spendTokens }: { spendTokens: (buckets: readonly Bucket[]) => MaybePromise<number> },
) {
  const refillMs = HOUR_MS / perHour
  const perCaller = (name: string): Bucket => ({ name, burst: perHour, refillMs })
  const spendOrReject = (...buckets: Bucket[]): MaybePromise<void> =>
    thenMaybe(spendTokens(buckets), rejectIfLimited)
  return {
    /** A caller with many writes in progress waits, so that other callers need not. */
    queue: createCallerQueue(RUNNING_MAX, { ms: WAIT_MS, error: waitedTooLong }),
    spendByUser: (userId: string) => spendOrReject(perCaller(`user ${userId}`)),
    spendByKey: (keyId: string) => spendOrReject(perCaller(`key ${keyId}`)),
    spendForKeyCreation: (keyId: string, workspaceId: string) =>
      spendOrReject(perCaller(`key ${keyId}`), {
        name: `creations ${workspaceId}`,
        burst: WORKSPACE_FACTOR * perHour,
        refillMs,
      }),
  }
}

const waitedTooLong = () =>
  new Fault('unavailable', {
    message: 'Your earlier changes are still in progress. Try again shortly.',
    retryAfterS: 1,
  })

function rejectIfLimited(waitMs: number): void {
  if (waitMs === 0) return
  const retryAfterS = Math.ceil(waitMs / 1000)
  throw new Fault('rate_limited', {
    message: `Too many changes. Try again in ${formatDuration(retryAfterS)}.`,
    retryAfterS,
  })
}

/** Only authenticated callers have a bucket. */
const BUCKETS_MAX = 100_000

export function createBuckets(clock: () => number) {
  const buckets = new TokenBuckets(BUCKETS_MAX)
  return { spendTokens: (spent: readonly Bucket[]): number => buckets.take(spent, clock()) }
}
