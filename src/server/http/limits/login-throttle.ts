// Throttles attempts to guess passwords and codes. Each node counts failures in memory.
//
// For each account, browsers that never signed in to it are delayed, not locked out: after a few failures
// each further failure increases the delay, up to 60 s. This allows about 1,500 guesses a day per account on
// each node. A browser that has signed in before (known-browser.ts) has its own budget, which others cannot
// use up.

import { formatDuration } from '../../domain/duration.ts'
import { Fault } from '../../domain/fault.ts'
import { type MaybePromise, thenMaybe } from '../../verification/verify.ts'
import type { AttemptLimits } from './attempt-counts.ts'
import type { NodeCounters } from './counters.ts'

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

export function createLoginThrottle({
  takeAttempt,
  refundAttempts,
  extendWindow,
}: Pick<NodeCounters, 'takeAttempt' | 'refundAttempts' | 'extendWindow'>) {
  /** Counts an attempt, whatever its outcome. Returns a function that refunds it. */
  const consume = (limits: AttemptLimits): MaybePromise<() => MaybePromise<void>> =>
    thenMaybe(takeAttempt(limits), ({ waitMs, attempts }) => {
      if (waitMs > 0) throw tooManyAttempts(Math.ceil(waitMs / 1000))
      return () => refundAttempts(attempts)
    })

  /**
   * Counts the attempt before it runs, so that parallel attempts count, and refunds it if no secret was
   * wrong. A successful attempt counts against the limits in `successes`.
   */
  async function attempt<T>(
    limits: AttemptLimits,
    act: () => Promise<T>,
    successes: AttemptLimits = [],
  ): Promise<T> {
    const refundSuccess = await consume(successes)
    try {
      const refundAttempt = await consume(limits)
      const result = await act().catch(async (error) => {
        await (isWrongSecret(error) ? extendWindow(limits) : refundAttempt())
        throw error
      })
      await refundAttempt()
      return result
    } catch (error) {
      await refundSuccess()
      throw error
    }
  }

  return { attempt, consume }
}

const isWrongSecret = (error: unknown) =>
  error instanceof Fault && (error.code === 'unauthorized' || error.code === 'forbidden')

const tooManyAttempts = (retryAfterS: number) =>
  new Fault('rate_limited', {
    message: `Too many attempts. Try again in ${formatDuration(retryAfterS)}.`,
    retryAfterS,
  })
