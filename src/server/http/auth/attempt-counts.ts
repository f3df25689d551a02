// Counts attempts against limits, in tables of fixed size. Everything in and out is JSON, so that workers can
// ask their primary.
import { type Cell, createAttemptCounters, type Kind, WINDOW_MS } from './attempt-counters.ts'

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

/** An attempt that was counted, with what is needed to undo it. */
export interface Counted {
  limit: Limit
  /** When the next attempt was allowed, in each cell. */
  before: number[]
  after: number[]
}

export function createAttemptCounts(clock: () => number) {
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

  const nextAts = (cells: readonly Cell[]) => cells.map(({ nextAt }) => nextAt)

  function count(limit: Limit): Counted {
    const cells = cellsOf(limit)
    const before = nextAts(cells)
    for (const cell of cells) cell.count += 1
    delayNext(limit)
    return { limit, before, after: nextAts(cells) }
  }

  function refundOne({ limit, before, after }: Counted): void {
    for (const [index, cell] of cellsOf(limit).entries()) {
      cell.count = Math.max(0, cell.count - 1)
      // Unless a failure has increased the delay in the meantime.
      if (cell.nextAt === after[index]) cell.nextAt = before[index] as number
    }
  }

  /** With delays, the window ends 15 minutes after the last failure. */
  function extendOne(limit: Limit): void {
    if (limit.onExceed === 'reject') return
    for (const cell of cellsOf(limit)) {
      // The window may have ended during the attempt.
      cell.count = Math.max(cell.count, 1)
      cell.until = clock() + WINDOW_MS
    }
    delayNext(limit)
  }

  return {
    /** Counts an attempt, unless it has to wait for some time because of one of the limits. */
    takeAttempt(limits: Limits): { waitMs: number; counted: Counted[] } {
      const longest = Math.max(0, ...limits.map(waitMs))
      return { waitMs: longest, counted: longest > 0 ? [] : limits.map(count) }
    },
    refundAttempts(counted: readonly Counted[]): void {
      counted.forEach(refundOne)
    },
    /** After a failed attempt. */
    extendWindow(limits: Limits): void {
      limits.forEach(extendOne)
    },
  }
}
