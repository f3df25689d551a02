// Slows down guessing of passwords and codes: counts failures in memory, on each node, in tables of bounded size.
//
// Per account, a browser that never signed in to it is delayed, never locked out: after a few failures each further one
// makes the next wait longer, up to 60 s. That is at most about 1,500 guesses a day for an account on each node. A browser
// that has signed in before (known-browser.ts) has a budget of its own, which nobody else can use up.
import { Fault } from '../../domain/fault.ts'
import { createAttemptCounters, type Kind, WINDOW_MS } from './attempt-counters.ts'

const DELAY_MIN_MS = 5_000
const DELAY_MAX_MS = 60_000

export interface Limit {
  kind: Kind
  /** Who is counted, e.g. a network. */
  name: string
  most: number
  /** What happens past `most`: refuse until the window of 15 minutes is over, or let one through after a delay that grows. */
  past: 'refuse' | 'delay'
}

export type Limits = readonly Limit[]

export function createLoginThrottle(clock: () => number) {
  const cellsOf = createAttemptCounters(clock)

  function waitMs(limit: Limit): number {
    const waits = cellsOf(limit).map(({ count, until, nextAt }) =>
      count < limit.most ? 0 : Math.max(0, (limit.past === 'refuse' ? until : nextAt) - clock()),
    )
    return Math.min(...waits)
  }

  function delayNext(limit: Limit): void {
    if (limit.past === 'refuse') return
    const cells = cellsOf(limit)
    const steps = Math.min(...cells.map(({ count }) => count)) - limit.most
    const delayMs = steps < 0 ? 0 : Math.min(DELAY_MIN_MS * 2 ** steps, DELAY_MAX_MS)
    // Never earlier: another name may share the cell.
    for (const cell of cells) cell.nextAt = Math.max(cell.nextAt, clock() + delayMs)
  }

  /** Returns how to undo it. */
  function count(limit: Limit): () => void {
    const cells = cellsOf(limit)
    const before = cells.map(({ nextAt }) => nextAt)
    for (const cell of cells) cell.count += 1
    delayNext(limit)
    const after = cells.map(({ nextAt }) => nextAt)
    return () => {
      for (const [index, cell] of cellsOf(limit).entries()) {
        cell.count = Math.max(0, cell.count - 1)
        // Unless a failure has delayed it further meanwhile.
        if (cell.nextAt === after[index]) cell.nextAt = before[index] as number
      }
    }
  }

  /** The window of delays ends 15 minutes after the last failure. */
  function prolong(limit: Limit): void {
    if (limit.past === 'refuse') return
    for (const cell of cellsOf(limit)) {
      // Its window may have ended during the attempt.
      cell.count = Math.max(cell.count, 1)
      cell.until = clock() + WINDOW_MS
    }
    delayNext(limit)
  }

  /** Counts the attempt, whatever its outcome. Returns how to undo it. */
  function consume(limits: Limits): () => void {
    const wait = Math.max(...limits.map(waitMs))
    if (wait > 0) throw tooMany(Math.ceil(wait / 1000))
    const undos = limits.map(count)
    return () => {
      for (const undo of undos) undo()
    }
  }

  /** Counts before it tries, so that attempts in parallel count too; only a wrong password or code stays counted. */
  async function attempt<T>(limits: Limits, act: () => Promise<T>): Promise<T> {
    const refund = consume(limits)
    try {
      const result = await act()
      refund()
      return result
    } catch (error) {
      const isFailure =
        error instanceof Fault && (error.code === 'unauthorized' || error.code === 'forbidden')
      if (isFailure) limits.forEach(prolong)
      else refund()
      throw error
    }
  }

  return { attempt, consume }
}

function tooMany(retryAfterS: number): Fault {
  const [count, unit] = retryAfterS <= 60 ? [retryAfterS, 'second'] : [Math.ceil(retryAfterS / 60), 'minute']
  const message = `Too many attempts. Try again in ${count} ${unit}${count === 1 ? '' : 's'}.`
  return new Fault('rate_limited', { message, retryAfterS })
}
