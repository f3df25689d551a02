// How much the peer may still send on a stream. The window starts at 256 KiB, as the protocol says, and
// doubles while it is what limits the transfer: when the reader consumes a window within a few round trips.
import { INITIAL_WINDOW, ProtocolError } from './frame.ts'

/** A reader that takes half a window within this many round trips would be faster with a larger one. */
const GROWTH_ROUND_TRIPS = 2
/** The event loops of both sides add to a round trip what an idle ping does not show. */
const RTT_MIN_MS = 5

/** Limits how far windows grow in total. */
export interface GrowthBudget {
  bytesLeft: number
}

/** Shared by the streams of a session. */
export interface SessionBudget extends GrowthBudget {
  readonly windowMax: number
  /** Shared by several sessions. */
  readonly total: GrowthBudget
}

export class ReceiveWindow {
  readonly #budget: SessionBudget
  #size = INITIAL_WINDOW
  /** What the peer may send before the next update. */
  #credit = INITIAL_WINDOW
  #consumed = 0
  #updatedAt: number | undefined

  constructor(budget: SessionBudget) {
    this.#budget = budget
  }

  get size(): number {
    return this.#size
  }

  /** Accounts for a frame of the peer. */
  receive(bytes: number): void {
    if (bytes > this.#credit)
      throw new ProtocolError(`receive window exceeded: ${bytes} bytes sent, ${this.#credit} allowed`)
    this.#credit -= bytes
    this.#updatedAt ??= performance.now()
  }

  /** The reader took these bytes. Returns the credit to send to the peer; 0 until half a window is due. */
  consume(bytes: number, rttMs: () => number | undefined): number {
    this.#consumed += bytes
    if (this.#consumed < this.#size / 2) return 0
    const now = performance.now()
    const credit = this.#consumed + this.#growth(now, rttMs())
    this.#updatedAt = now
    this.#credit += credit
    this.#consumed = 0
    return credit
  }

  /** Returns the growth to the budget when the stream ends. */
  release(): void {
    this.#grow(INITIAL_WINDOW - this.#size)
  }

  #growth(now: number, rttMs: number | undefined): number {
    if (rttMs === undefined || this.#updatedAt === undefined) return 0
    if (now - this.#updatedAt > Math.max(rttMs, RTT_MIN_MS) * GROWTH_ROUND_TRIPS) return 0
    const { windowMax, bytesLeft, total } = this.#budget
    const bytes = Math.min(this.#size, windowMax - this.#size, bytesLeft, total.bytesLeft)
    if (bytes <= 0) return 0
    this.#grow(bytes)
    return bytes
  }

  #grow(bytes: number): void {
    this.#size += bytes
    this.#budget.bytesLeft -= bytes
    this.#budget.total.bytesLeft -= bytes
  }
}
