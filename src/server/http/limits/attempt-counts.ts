// Counts attempts against limits, in maps of bounded size. Everything in and out is JSON, so that workers can
// ask their primary.
import { BoundedMap } from '../../../lib/bounded-map.ts'

export const WINDOW_MS = 15 * 60 * 1000
const DELAY_MIN_MS = 5_000
const DELAY_MAX_MS = 60_000
/** Each kind has so many. Beyond it, the name that was counted longest ago is evicted. */
const NAMES_MAX = 100_000

/** A flood of names of one kind does not affect the other kinds. */
type Kind =
  | 'known-browser'
  | 'sign-in-account'
  | 'signed-in-account'
  | 'sign-in-account-from-network'
  | 'own-account'
  | 'mail-account'
  | 'user-code-account'
  | `${'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail' | 'device' | 'user-code'}-network`

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
interface Counted {
  limit: Limit
  /** When the next attempt was allowed. */
  before: number
  after: number
}

interface Counter {
  count: number
  /** When the window ends. */
  until: number
  /** When the next attempt is allowed, if attempts are delayed. */
  nextAt: number
}

export function createAttemptCounts(clock: () => number) {
  const kinds = new Map<Kind, BoundedMap<string, Counter>>()

  /** A new one if the window has ended, or the clock was set back after it began. */
  function read({ kind, name }: Limit): Counter {
    const now = clock()
    const counter = kinds.get(kind)?.get(name)
    const isCurrent = counter && counter.until > now && counter.until <= now + WINDOW_MS
    return isCurrent ? counter : { count: 0, until: now + WINDOW_MS, nextAt: 0 }
  }

  function store({ kind, name }: Limit, counter: Counter): void {
    const counters = kinds.get(kind) ?? new BoundedMap(NAMES_MAX)
    kinds.set(kind, counters.set(name, counter))
  }

  function waitMs(limit: Limit): number {
    const { count, until, nextAt } = read(limit)
    return count < limit.max ? 0 : Math.max(0, (limit.onExceed === 'reject' ? until : nextAt) - clock())
  }

  function delayNext({ max, onExceed }: Limit, counter: Counter): void {
    const steps = counter.count - max
    if (onExceed === 'reject' || steps < 0) return
    const delayMs = Math.min(DELAY_MIN_MS * 2 ** steps, DELAY_MAX_MS)
    // Never earlier: a refund lowers the count.
    counter.nextAt = Math.max(counter.nextAt, clock() + delayMs)
  }

  function count(limit: Limit): Counted {
    const counter = read(limit)
    const before = counter.nextAt
    counter.count += 1
    delayNext(limit, counter)
    store(limit, counter)
    return { limit, before, after: counter.nextAt }
  }

  function refundOne({ limit, before, after }: Counted): void {
    const counter = read(limit)
    counter.count = Math.max(0, counter.count - 1)
    // Unless a failure has increased the delay in the meantime.
    if (counter.nextAt === after) counter.nextAt = before
  }

  /** With delays, the window ends 15 minutes after the last failure. */
  function extendOne(limit: Limit): void {
    if (limit.onExceed === 'reject') return
    const counter = read(limit)
    // The window may have ended during the attempt.
    counter.count = Math.max(counter.count, 1)
    counter.until = clock() + WINDOW_MS
    delayNext(limit, counter)
    store(limit, counter)
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
