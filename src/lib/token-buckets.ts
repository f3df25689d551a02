// Token buckets by name, each stored as the time at which it is full again.
import { BoundedMap } from './collections/bounded-map.ts'

/** `burst` at once, then one every `refillMs`. */
export interface Bucket {
  readonly name: string
  readonly burst: number
  readonly refillMs: number
}

export class TokenBuckets {
  readonly #fullAt: BoundedMap<string, number>

  /** Beyond `max`, the bucket that was used longest ago is evicted, as if it were full. */
  constructor(max: number) {
    this.#fullAt = new BoundedMap(max)
  }

  /** Takes one from each bucket and returns 0; or takes none, and returns the time to wait. */
  take(buckets: readonly Bucket[], now: number): number {
    const waits = buckets.map(
      (bucket) => this.#refillTime(bucket, now) - (bucket.burst - 1) * bucket.refillMs,
    )
    const waitMs = Math.max(0, ...waits)
    if (waitMs > 0) return waitMs
    for (const bucket of buckets)
      this.#fullAt.set(bucket.name, now + this.#refillTime(bucket, now) + bucket.refillMs)
    return 0
  }

  /** Returns what was taken from a bucket. */
  refund({ name, refillMs }: Bucket): void {
    const fullAt = this.#fullAt.get(name)
    if (fullAt !== undefined) this.#fullAt.set(name, fullAt - refillMs)
  }

  /** The time until the bucket is full. It is limited, because the clock may have been set back. */
  #refillTime({ name, burst, refillMs }: Bucket, now: number): number {
    const fullAt = this.#fullAt.get(name) ?? now
    if (fullAt - now > burst * refillMs) this.#fullAt.set(name, now + burst * refillMs)
    return Math.min(Math.max(fullAt - now, 0), burst * refillMs)
  }
}
