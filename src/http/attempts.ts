// Failed attempts to prove who one is, counted in memory by each node, so that guessing is slow. Bounded in size.
import { Fault } from '../domain/fault.ts'

const WINDOW_MS = 15 * 60 * 1000
const NAMES_MAX = 50_000

/** Under which names an attempt counts, and how many may fail in a quarter of an hour. */
export type Limits = readonly (readonly [name: string, most: number])[]

export function createAttempts(clock: () => number) {
  const failures = new Map<string, { count: number; until: number }>()

  function require(limits: Limits): void {
    const now = clock()
    for (const [name, most] of limits) {
      const found = failures.get(name)
      if (!found || found.until <= now || found.count < most) continue
      const retryAfterS = Math.ceil((found.until - now) / 1000)
      throw new Fault('rate_limited', {
        message: `Too many attempts. Try again in ${Math.ceil(retryAfterS / 60)} minutes.`,
        retryAfterS,
      })
    }
  }

  function count(limits: Limits): void {
    const now = clock()
    for (const [name] of limits) {
      const found = failures.get(name)
      if (found && found.until > now) found.count += 1
      else failures.set(name, { count: 1, until: now + WINDOW_MS })
    }
    // Those that began longest ago go first.
    for (const name of failures.keys()) {
      if (failures.size <= NAMES_MAX) break
      failures.delete(name)
    }
  }

  /** Counts before it tries, so that many tries at once count too; what succeeds is taken back. */
  async function attempt<T>(limits: Limits, act: () => Promise<T>): Promise<T> {
    spend(limits)
    try {
      const result = await act()
      takeBack(limits)
      return result
    } catch (error) {
      // Only a wrong password or code counts.
      const isRefusal =
        error instanceof Fault && (error.code === 'unauthorized' || error.code === 'forbidden')
      if (!isRefusal) takeBack(limits)
      throw error
    }
  }

  /** Counts whatever becomes of it. */
  function spend(limits: Limits): void {
    require(limits)
    count(limits)
  }

  function takeBack(limits: Limits): void {
    for (const [name] of limits) {
      const found = failures.get(name)
      if (found) found.count -= 1
    }
  }

  return { attempt, spend }
}
