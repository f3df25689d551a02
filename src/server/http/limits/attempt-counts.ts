// Counts attempts against limits, in maps of bounded size. Arguments and results are JSON, so that workers
// can call the counters of their primary.
import { BoundedMap } from '../../../lib/collections/bounded-map.ts'

export const WINDOW_MS = 15 * 60 * 1000
const DELAY_MIN_MS = 5_000
const DELAY_MAX_MS = 60_000
/** Names per kind. Beyond this limit, the name that was counted longest ago is evicted. */
const NAMES_MAX = 100_000

/** Each kind has its own map, so that a flood of names of one kind does not evict those of others. */
type Kind =
  | 'known-browser'
  | 'sign-in-account'
  | 'signed-in-account'
  | 'sign-in-account-from-network'
  | 'own-account'
  | 'mail-account'
  | 'user-code-account'
  | `${'sign-in' | 'code' | 'sso' | 'sso-return' | 'mail' | 'device' | 'user-code' | 'client' | 'agent'}-network`

interface Limit {
  kind: Kind
  /** Identifies the counter, e.g. a network. */
  name: string
  max: number
  /** Reject until the window of 15 minutes ends, or allow one attempt after each delay, which grows. */
  onExceed: 'reject' | 'delay'
}

export type AttemptLimits = readonly Limit[]

/** An attempt that was counted, and `nextAt` of its counter before and after, which a refund needs. */
interface Attempt {
  limit: Limit
  nextAtBefore: number
  nextAtAfter: number
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

  /** Returns a new counter if the window has ended, or the clock was set back after it began. */
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

  function count(limit: Limit): Attempt {
    const counter = read(limit)
    const nextAtBefore = counter.nextAt
    counter.count += 1
    delayNext(limit, counter)
    store(limit, counter)
    return { limit, nextAtBefore, nextAtAfter: counter.nextAt }
  }

  function refund({ limit, nextAtBefore, nextAtAfter }: Attempt): void {
    const counter = read(limit)
    counter.count = Math.max(0, counter.count - 1)
    // A failure may have increased the delay in the meantime.
    if (counter.nextAt === nextAtAfter) counter.nextAt = nextAtBefore
  }

  /** With delays, the window ends 15 minutes after the last failure. */
  function extend(limit: Limit): void {
    if (limit.onExceed === 'reject') return
    const counter = read(limit)
    // The window may have ended during the attempt.
    counter.count = Math.max(counter.count, 1)
    counter.until = clock() + WINDOW_MS
    delayNext(limit, counter)
    store(limit, counter)
  }

  return {
    /** Counts an attempt against every limit, or none if one of them requires waiting. */
    takeAttempt(limits: AttemptLimits): { waitMs: number; attempts: Attempt[] } {
      const longest = Math.max(0, ...limits.map(waitMs))
      return { waitMs: longest, attempts: longest > 0 ? [] : limits.map(count) }
    },
    refundAttempts(attempts: readonly Attempt[]): void {
      attempts.forEach(refund)
    },
    /** Called after a failed attempt. */
    extendWindow(limits: AttemptLimits): void {
      limits.forEach(extend)
    },
  }
}
