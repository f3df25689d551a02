// Slows down guessing of passwords and codes: counts failures in memory, on each node, in a table of bounded size.
//
// Per account, a browser that never signed in to it is delayed, never locked out: after a few failures each further one
// makes the next wait longer, up to 60 s. That is at most about 1,500 guesses a day for an account on each node. A browser
// that has signed in before (known-browser.ts) has a budget of its own, which nobody else can use up.
import { createHmac, randomBytes } from 'node:crypto'
import { Fault } from '../domain/fault.ts'

const WINDOW_MS = 15 * 60 * 1000
const DELAY_MIN_MS = 5_000
const DELAY_MAX_MS = 60_000
const BUCKETS = 2 ** 17

export interface Limit {
  /** What is counted, e.g. attempts from one network. */
  name: string
  most: number
  /** What happens past `most`: refuse until the window of 15 minutes is over, or let one through after a delay that grows. */
  past: 'refuse' | 'delay'
}

export type Limits = readonly Limit[]

interface Failures {
  count: number
  until: number
  nextAt: number
}

export function createLoginThrottle(clock: () => number) {
  // Buckets instead of an entry for each name: nothing is evicted, so that no flood of names resets a count. Two names
  // share a bucket by chance at most, because the key of the hash is secret.
  const buckets = new Map<number, Failures>()
  const key = randomBytes(32)

  function failuresOf({ name }: Limit): Failures {
    const bucket = createHmac('sha256', key).update(name).digest().readUInt32BE() % BUCKETS
    const found = buckets.get(bucket)
    const now = clock()
    // Over, or begun before the clock was set back.
    if (found && found.until > now && found.until <= now + WINDOW_MS) return found
    const fresh = { count: 0, until: now + WINDOW_MS, nextAt: 0 }
    buckets.set(bucket, fresh)
    return fresh
  }

  function waitMs(limit: Limit): number {
    const { count, until, nextAt } = failuresOf(limit)
    if (count < limit.most) return 0
    return Math.max(0, (limit.past === 'refuse' ? until : nextAt) - clock())
  }

  function delay(limit: Limit): void {
    if (limit.past === 'refuse') return
    const failures = failuresOf(limit)
    const steps = failures.count - limit.most
    const delayMs = steps < 0 ? 0 : Math.min(DELAY_MIN_MS * 2 ** steps, DELAY_MAX_MS)
    // Never earlier: another name may share the bucket.
    failures.nextAt = Math.max(failures.nextAt, clock() + delayMs)
    failures.until = clock() + WINDOW_MS
  }

  /** Counts the attempt, whatever its outcome. */
  function consume(limits: Limits): void {
    const wait = Math.max(...limits.map(waitMs))
    if (wait > 0) throw tooMany(Math.ceil(wait / 1000))
    for (const limit of limits) {
      failuresOf(limit).count += 1
      delay(limit)
    }
  }

  function refund(limits: Limits): void {
    for (const limit of limits) {
      const failures = failuresOf(limit)
      failures.count = Math.max(0, failures.count - 1)
    }
  }

  /** Counts before it tries, so that attempts in parallel count too; only a wrong password or code stays counted. */
  async function attempt<T>(limits: Limits, act: () => Promise<T>): Promise<T> {
    consume(limits)
    try {
      const result = await act()
      refund(limits)
      return result
    } catch (error) {
      const isFailure =
        error instanceof Fault && (error.code === 'unauthorized' || error.code === 'forbidden')
      if (isFailure) limits.forEach(delay)
      else refund(limits)
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
