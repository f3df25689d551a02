// A lease whose holder has to stop something when it expires.
import { createLease, type Moment } from './lease.ts'

interface WatchedLeaseOptions {
  onExpired(): void
  onRenewed(): void
}

export class WatchedLease {
  readonly #options: WatchedLeaseOptions
  readonly #lease = createLease(Date.now)
  #isHeld = false
  #timer: NodeJS.Timeout | undefined

  constructor(options: WatchedLeaseOptions) {
    this.#options = options
  }

  now(): Moment {
    return this.#lease.now()
  }

  /** When it expires, unless it is renewed. */
  get until(): Moment {
    return this.#lease.until()
  }

  /**
   * A process that was stopped may call this before any timer has fired: `onExpired` is called before it
   * returns false for the first time.
   */
  isValid(): boolean {
    if (this.#lease.isValid()) return true
    if (this.#isHeld) this.#expire()
    return false
  }

  renew(from: Moment, ms: number): void {
    this.renewUntil({ monotonic: from.monotonic + ms, wall: from.wall + ms })
  }

  renewUntil(until: Moment): void {
    this.#lease.renewUntil(until)
    if (!this.#lease.isValid()) return
    const isNew = !this.#isHeld
    this.#isHeld = true
    this.#schedule()
    if (isNew) this.#options.onRenewed()
  }

  /** Calls `onExpired` if the lease was valid, like `isValid`, when that is called next. */
  end(): void {
    this.#lease.end()
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    const leftMs = this.#lease.leftMs()
    if (leftMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.isValid() && this.#schedule(), Math.max(1, leftMs)).unref()
  }

  #expire(): void {
    this.#isHeld = false
    this.#lease.end()
    clearTimeout(this.#timer)
    this.#options.onExpired()
  }
}
