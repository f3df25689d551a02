// Runs a task again and again, one run at a time, after the delay that each run returns or earlier on
// request.

export class RepeatedTask {
  /** Returns the milliseconds until the next run, and never rejects. */
  readonly #run: () => Promise<number>
  #timer: NodeJS.Timeout | undefined
  #dueAt = Number.POSITIVE_INFINITY
  #running: Promise<void> | undefined
  #next: PromiseWithResolvers<void> | undefined
  #isStopped = false

  constructor(run: () => Promise<number>) {
    this.#run = run
  }

  /** Runs the task within this time, but not before the current run has ended. */
  runWithin(ms: number): void {
    const dueAt = performance.now() + ms
    if (this.#isStopped || dueAt >= this.#dueAt) return
    this.#dueAt = dueAt
    if (!this.#running) this.#schedule()
  }

  /** Resolves after a run that has begun after this call. */
  runNow(): Promise<void> {
    this.#next ??= Promise.withResolvers()
    this.runWithin(0)
    return this.#next.promise
  }

  /** Resolves when the current run has ended. */
  async stop(): Promise<void> {
    this.#isStopped = true
    clearTimeout(this.#timer)
    await this.#running
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    const start = () => {
      // Timers may fire some milliseconds early: their delay begins with the current turn of the event loop.
      if (performance.now() < this.#dueAt) return this.#schedule()
      this.#dueAt = Number.POSITIVE_INFINITY
      this.#running = this.#runOnce()
    }
    this.#timer = setTimeout(start, Math.ceil(Math.max(0, this.#dueAt - performance.now()))).unref()
  }

  async #runOnce(): Promise<void> {
    const next = this.#next
    this.#next = undefined
    const delayMs = await this.#run()
    next?.resolve()
    this.#running = undefined
    this.#dueAt = Math.min(this.#dueAt, performance.now() + delayMs)
    if (!this.#isStopped) this.#schedule()
  }
}
