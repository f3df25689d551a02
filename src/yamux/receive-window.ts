// How much the peer may still send on a stream. The window starts at 256 KiB, as the protocol says, and
// grows while it is what limits the transfer: when the reader consumes a window within a few round trips. It
// doubles, or becomes at once as large as the last one of the session that has grown. While memory is scarce
// it does not grow, and the windows of slow readers shrink.
import { INITIAL_WINDOW, ProtocolError } from './frame.ts'

/** A reader that takes half a window within this many round trips would be faster with a larger one. */
const GROWTH_ROUND_TRIPS = 2
/** The event loops of both sides add to a round trip what an idle ping does not show. */
const RTT_MIN_MS = 5

const WINDOW_MIN = 16 * 1024

export interface MemoryPressure {
  /** Whether memory is scarce. */
  readonly isHigh: boolean
}

/** Limits the growth of several windows in total. */
export interface GrowthBudget {
  bytesLeft: number
}

/** Shared by the streams of a session. */
export interface SessionBudget extends GrowthBudget {
  /** Size of the window that has grown last. */
  lastGrown: number
  readonly windowMax: number
  /** Shared by several sessions. */
  readonly total: GrowthBudget
  readonly pressure: MemoryPressure | undefined
}

export class ReceiveWindow {
  readonly #budget: SessionBudget
  #size = INITIAL_WINDOW
  /** How many bytes the peer may send before the next update. */
  #credit = INITIAL_WINDOW
  #consumed = 0
  #updatedAt: number | undefined

  constructor(budget: SessionBudget) {
    this.#budget = budget
  }

  get size(): number {
    return this.#size
  }

  receive(bytes: number): void {
    if (bytes > this.#credit)
      throw new ProtocolError(`receive window exceeded: ${bytes} bytes sent, ${this.#credit} allowed`)
    this.#credit -= bytes
    this.#updatedAt ??= performance.now()
  }

  /** Called when the reader took bytes. Returns the credit to send to the peer: 0 below half a window. */
  consume(bytes: number, rttMs: () => number | undefined): number {
    this.#consumed += bytes
    if (this.#consumed < this.#size / 2) return 0
    const now = performance.now()
    // Never negative: a window shrinks by at most half of its size, and that much was consumed.
    const credit = this.#consumed + this.#resize(now, rttMs())
    this.#updatedAt = now
    this.#credit += credit
    this.#consumed = 0
    return credit
  }

  /** Returns the growth to the budget when the stream ends. */
  release(): void {
    this.#grow(INITIAL_WINDOW - this.#size)
  }

  /** Returns by how much the window has grown. */
  #resize(now: number, rttMs: number | undefined): number {
    const isHigh = this.#budget.pressure?.isHigh === true
    if (this.#isLimiting(now, rttMs)) {
      const growth = isHigh ? 0 : this.#grow(this.#growthMax())
      if (growth > 0) this.#budget.lastGrown = this.#size
      return growth
    }
    return isHigh && this.#size > WINDOW_MIN ? this.#grow(-this.#size / 2) : 0
  }

  #isLimiting(now: number, rttMs: number | undefined): boolean {
    if (rttMs === undefined || this.#updatedAt === undefined) return false
    return now - this.#updatedAt <= Math.max(rttMs, RTT_MIN_MS) * GROWTH_ROUND_TRIPS
  }

  #growthMax(): number {
    const { lastGrown, windowMax, bytesLeft, total } = this.#budget
    const target = Math.min(Math.max(2 * this.#size, lastGrown), windowMax)
    return Math.max(0, Math.min(target - this.#size, bytesLeft, total.bytesLeft))
  }

  #grow(bytes: number): number {
    this.#size += bytes
    this.#budget.bytesLeft -= bytes
    this.#budget.total.bytesLeft -= bytes
    return bytes
  }
}
