// How much of the messages of one WebSocket is parsed in a second. Parsing takes much longer than passing on:
// without a limit, one visitor could keep the recorder from recording others.
const FRAMES_MAX = 20_000
const INFLATED_MAX = 1_000
const INFLATED_BYTES_MAX = 16 * 1024 * 1024
const PERIOD_MS = 1_000

/** The message is for the user. */
export class TooManyMessages extends Error {
  override name = 'TooManyMessages'

  constructor() {
    super('The WebSocket had more messages in a second than the recorder parses. It was not affected.')
  }
}

export class MessageBudget {
  readonly #now: () => number
  #startMs = Number.NEGATIVE_INFINITY
  #frames = 0
  #inflated = 0
  #inflatedBytes = 0

  /** `now` returns the time at which the bytes passed. */
  constructor(now: () => number) {
    this.#now = now
  }

  /** Throws TooManyMessages. */
  addFrame(): void {
    const now = this.#now()
    if (now - this.#startMs >= PERIOD_MS) {
      this.#startMs = now
      this.#frames = 0
      this.#inflated = 0
      this.#inflatedBytes = 0
    }
    this.#frames += 1
    if (this.#frames > FRAMES_MAX) throw new TooManyMessages()
  }

  /** Throws TooManyMessages. */
  addInflated(bytes: number): void {
    this.#inflated += 1
    this.#inflatedBytes += bytes
    if (this.#inflated > INFLATED_MAX || this.#inflatedBytes > INFLATED_BYTES_MAX) throw new TooManyMessages()
  }
}
