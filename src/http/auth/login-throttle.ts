// Throttles attempts to guess passwords and codes. Each node counts failures in memory, in tables of fixed
// size.
//
// For each account, browsers that never signed in to it are delayed, not locked out: after a few failures
// each further one increases the delay, up to 60 s. This allows about 1,500 guesses a day per account on each
// node. A browser that has signed in before (known-browser.ts) has its own budget, which others cannot use
// up.
import { formatDuration } from '../../domain/duration.ts'
import { Fault } from '../../domain/fault.ts'
import { createAttemptCounters, type Kind, WINDOW_MS } from './attempt-counters.ts'

const DELAY_MIN_MS = 5_000
const DELAY_MAX_MS = 60_000

export interface Limit {
  kind: Kind
  /** Identifies the counter, e.g. a network. */
  name: string
  max: number
  /** Reject until the window of 15 minutes ends, or allow one attempt after each delay, which grows. */
  onExceed: 'reject' | 'delay'
}

export type Limits = readonly Limit[]

export type LoginThrottle = ReturnType<typeof createLoginThrottle>

export function createLoginThrottle(clock: () => number) {
  const cellsOf = createAttemptCounters(clock)

  function waitMs(limit: Limit): number {
    const waits = cellsOf(limit).map(({ count, until, nextAt }) =>
      count < limit.max ? 0 : Math.max(0, (limit.onExceed === 'reject' ? until : nextAt) - clock()),
    )
    return Math.min(...waits)
  }

  function delayNext(limit: Limit): void {
    if (limit.onExceed === 'reject') return
    const cells = cellsOf(limit)
    const steps = Math.min(...cells.map(({ count }) => count)) - limit.max
    const delayMs = steps < 0 ? 0 : Math.min(DELAY_MIN_MS * 2 ** steps, DELAY_MAX_MS)
    // Never earlier: another name may share the cell.
    for (const cell of cells) cell.nextAt = Math.max(cell.nextAt, clock() + delayMs)
  }

  /** Returns a function that undoes it. */
  function count(limit: Limit): () => void {
    const cells = cellsOf(limit)
    const before = cells.map(({ nextAt }) => nextAt)
    for (const cell of cells) cell.count += 1
    delayNext(limit)
    const after = cells.map(({ nextAt }) => nextAt)
    return () => {
      for (const [index, cell] of cellsOf(limit).entries()) {
        cell.count = Math.max(0, cell.count - 1)
        // Unless a failure has increased the delay in the meantime.
        if (cell.nextAt === after[index]) cell.nextAt = before[index] as number
      }
    }
  }

  /** With delays, the window ends 15 minutes after the last failure. */
  function extendWindow(limit: Limit): void {
    if (limit.onExceed === 'reject') return
    for (const cell of cellsOf(limit)) {
      // The window may have ended during the attempt.
      cell.count = Math.max(cell.count, 1)
      cell.until = clock() + WINDOW_MS
    }
    delayNext(limit)
  }

  /** Counts an attempt, whatever its outcome. Returns a function that refunds it. */
  function consume(limits: Limits): () => void {
    const wait = Math.max(...limits.map(waitMs))
    if (wait > 0) throw tooManyAttempts(Math.ceil(wait / 1000))
    const refunds = limits.map(count)
    return () => {
      for (const refund of refunds) refund()
    }
  }

  /**
   * Counts the attempt before it runs, so that parallel ones count, and refunds it if no secret was wrong.
   */
  async function attempt<T>(limits: Limits, act: () => Promise<T>): Promise<T> {
    const refund = consume(limits)
    try {
      const result = await act()
      refund()
      return result
    } catch (error) {
      const isFailure =
        error instanceof Fault && (error.code === 'unauthorized' || error.code === 'forbidden')
      if (isFailure) limits.forEach(extendWindow)
      else refund()
      throw error
    }
  }

  return { attempt, consume }
}

const tooManyAttempts = (retryAfterS: number) =>
  new Fault('rate_limited', {
    message: `Too many attempts. Try again in ${formatDuration(retryAfterS)}.`,
    retryAfterS,
  })
