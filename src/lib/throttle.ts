// Limits how often something is done, by key: a repetition within the interval is dropped.
export class Throttle {
  readonly #lastCalls = new Map<unknown, number>()

  run(key: unknown, intervalMs: number, call: () => void): void {
    const now = performance.now()
    if (now - (this.#lastCalls.get(key) ?? Number.NEGATIVE_INFINITY) < intervalMs) return
    this.#lastCalls.set(key, now)
    call()
  }
}
