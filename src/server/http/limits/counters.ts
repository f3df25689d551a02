// Rate-limit counters of a node. One process counts for the whole node: the only one or, with several
// workers, the primary, which the workers ask. Otherwise each worker would allow as much as the whole node.
import type { MaybePromise } from '../../verification/verify.ts'
import { createAttemptCounts } from './attempt-counts.ts'
import { createPollTimes } from './poll-times.ts'
import { createRequestCounts } from './rate-limit.ts'
import { createBuckets } from './write-limits.ts'

type Counters = ReturnType<typeof createCounters>

export const createCounters = (clock: () => number) => ({
  ...createAttemptCounts(clock),
  ...createRequestCounts(clock),
  ...createPollTimes(clock),
  ...createBuckets(clock),
})

/** The counters of this process or, in a worker, of the primary. Arguments and results are JSON. */
export type NodeCounters = {
  [N in keyof Counters]: (...args: Parameters<Counters[N]>) => MaybePromise<ReturnType<Counters[N]>>
}

/** A record, so that a missing name does not compile. */
const names: Record<keyof Counters, true> = {
  takeAttempt: true,
  refundAttempts: true,
  extendWindow: true,
  countRequest: true,
  isPollTooSoon: true,
  spendTokens: true,
}

/** Counters of a worker, which call those of its primary. */
export const remoteCounters = (call: (name: string, args: unknown[]) => Promise<unknown>): NodeCounters =>
  Object.fromEntries(
    Object.keys(names).map((name) => [name, (...args: unknown[]) => call(name, args)]),
  ) as unknown as NodeCounters

/** The primary handles the calls of its workers. */
export const countersHandler =
  (counters: Counters) =>
  (name: string, args: unknown[]): unknown =>
    (counters[name as keyof Counters] as (...args: unknown[]) => unknown)(...args)
