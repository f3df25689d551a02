// Counters of hot paths: plain numbers, without labels to look up. Metrics read them when they are scraped,
// so counting costs one addition. This file imports nothing.

/** OpenTelemetry's buckets for durations of HTTP requests, in seconds. */
const BUCKETS_S = [0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10]

export class DurationHistogram {
  static readonly bucketsS: readonly number[] = BUCKETS_S
  static readonly #bucketsMs = BUCKETS_S.map((seconds) => seconds * 1_000)
  /** The count of each bucket; the last bucket has no upper bound. */
  readonly counts = new Float64Array(BUCKETS_S.length + 1)
  sumMs = 0

  observe(ms: number): void {
    const bounds = DurationHistogram.#bucketsMs
    let bucket = 0
    while (bucket < bounds.length && ms > (bounds[bucket] as number)) bucket += 1
    ;(this.counts[bucket] as number) += 1
    this.sumMs += ms
  }

  /** Observes how long a promise takes to settle. */
  async time<T>(promise: Promise<T>): Promise<T> {
    const startedAt = performance.now()
    try {
      return await promise
    } finally {
      this.observe(performance.now() - startedAt)
    }
  }
}
