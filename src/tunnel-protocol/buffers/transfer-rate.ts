// How fast a connection transfers: a moving average that is brought up to date when it is read, so that a
// transfer only adds to a counter.
const PERIOD_MS = 10_000
/** The initial rate in bytes per millisecond: a connection that has just begun is not a slow one. */
const INITIAL_RATE = 64

export class TransferRate {
  #updatedAt: number
  #rate = INITIAL_RATE
  /** Bytes since the last update. */
  #bytes = 0

  constructor(now: number) {
    this.#updatedAt = now
  }

  add(bytes: number): void {
    this.#bytes += bytes
  }

  /** The rate in bytes per millisecond. */
  estimate(now: number): number {
    const elapsedMs = now - this.#updatedAt
    const rate = (this.#rate * PERIOD_MS + this.#bytes) / (PERIOD_MS + elapsedMs)
    // A fast beginning does not count for long.
    if (elapsedMs >= PERIOD_MS) {
      this.#rate = rate
      this.#bytes = 0
      this.#updatedAt = now
    }
    return rate
  }
}
