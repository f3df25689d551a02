// The expiries of keys that were valid: whatever such a key has opened is closed when it expires.
import { BoundedMap } from '../../lib/collections/bounded-map.ts'

/** Timers of Node are limited to 24 days, and stop while the machine is suspended. */
const TIMER_MAX_MS = 60_000

interface ExpiriesOptions {
  readonly max: number
  onExpired(hash: string): void
}

export class Expiries {
  readonly #options: ExpiriesOptions
  /** Deadlines on the monotonic clock, by the hash of the key. */
  readonly #deadlines: BoundedMap<string, number>
  #timer: NodeJS.Timeout | undefined
  #timerAt = Number.POSITIVE_INFINITY

  constructor(options: ExpiriesOptions) {
    this.#options = options
    this.#deadlines = new BoundedMap(options.max)
  }

  /** An expiry is never extended: a later deadline is from a node that does not know the earlier one yet. */
  add(hash: string, expiresAt: number): void {
    const deadline = Math.min(expiresAt, this.#deadlines.get(hash) ?? expiresAt)
    this.#deadlines.set(hash, deadline)
    if (deadline < this.#timerAt) this.#schedule(deadline)
  }

  stop(): void {
    clearTimeout(this.#timer)
    this.#deadlines.clear()
  }

  #schedule(at: number): void {
    clearTimeout(this.#timer)
    const waitMs = Math.min(Math.max(Math.ceil(at - performance.now()), 0), TIMER_MAX_MS)
    this.#timerAt = at
    this.#timer = setTimeout(() => this.#onTimer(), waitMs).unref()
  }

  #onTimer(): void {
    const now = performance.now()
    this.#timerAt = Number.POSITIVE_INFINITY
    let next = Number.POSITIVE_INFINITY
    for (const [hash, deadline] of this.#deadlines) {
      if (deadline <= now) {
        this.#deadlines.delete(hash)
        this.#options.onExpired(hash)
      } else if (deadline < next) next = deadline
    }
    if (next !== Number.POSITIVE_INFINITY) this.#schedule(next)
  }
}
