/** A token bucket: `burst` at once, then `perSecond`. */
export class RateLimit {
  readonly #perSecond: number
  readonly #burst: number
  #tokens: number
  #updatedAt = 0

  constructor({ perSecond, burst }: { perSecond: number; burst: number }) {
    this.#perSecond = perSecond
    this.#burst = burst
    this.#tokens = burst
  }

  /** False if the limit is reached. `now` is in milliseconds and never decreases. */
  take(now: number): boolean {
    const refill = ((now - this.#updatedAt) / 1_000) * this.#perSecond
    this.#tokens = Math.min(this.#burst, this.#tokens + refill)
    this.#updatedAt = now
    if (this.#tokens < 1) return false
    this.#tokens -= 1
    return true
  }
}
