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
/** As long as a write waits for a lock of the database: while that is blocked, others would fail as well. */
const WAIT_MS = 5_000

interface Buckets {
  spendTokens: (buckets: readonly Bucket[]) => MaybePromise<number>
}

/** All writes of an hour may come at once: scripts do that. */
export function createWriteLimits(perHour: number, { spendTokens }: Buckets) {
  const refillMs = HOUR_MS / perHour
  const perCaller = (name: string): Bucket => ({ name, burst: perHour, refillMs })
  const spendOrReject = (...buckets: Bucket[]): MaybePromise<void> =>
    thenMaybe(spendTokens(buckets), rejectIfLimited)
  return {
    /** Writes of one caller beyond a few wait for each other, so that those of others need not. */
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
const CALLERS_MAX = 100_000

export function createBuckets(clock: () => number) {
  const buckets = new TokenBuckets(CALLERS_MAX)
  return { spendTokens: (spent: readonly Bucket[]): number => buckets.take(spent, clock()) }
}
