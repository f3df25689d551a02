// The beginning of a body, or of another part of a message, in one buffer, up to a limit; the rest is counted
// only.
import { LIMITS } from '../api.ts'

const INITIAL_BYTES = 1024
const EMPTY = Buffer.alloc(0)

export class RecordedBody {
  /** The size of the whole body so far. */
  bytes = 0
  /** The body has ended. */
  isComplete = false
  readonly #bytesMax: number
  #buffer = EMPTY
  #length = 0
  #isDropped = false

  constructor(bytesMax: number = LIMITS.bodyBytes) {
    this.#bytesMax = bytesMax
  }

  /** Recorded bytes; not changed later. */
  get content(): Buffer {
    return this.#buffer.subarray(0, this.#length)
  }

  get allocated(): number {
    return this.#buffer.length
  }

  /** The recorded bytes are not the whole body. */
  get isCut(): boolean {
    return !this.isComplete || this.#length < this.bytes
  }

  add(data: Buffer): void {
    this.bytes += data.length
    const taken = this.#isDropped ? 0 : Math.min(data.length, this.#bytesMax - this.#length)
    if (taken === 0) return
    const length = this.#length + taken
    if (length > this.#buffer.length) {
      const size = Math.max(INITIAL_BYTES, 2 * this.#buffer.length, length)
      this.#resize(Math.min(size, this.#bytesMax))
    }
    data.copy(this.#buffer, this.#length, 0, taken)
    this.#length = length
  }

  /** Releases memory that is not used. */
  trim(): void {
    if (this.#length < this.#buffer.length) this.#resize(this.#length)
  }

  /** Releases all memory. */
  drop(): void {
    this.#isDropped = true
    this.#buffer = EMPTY
    this.#length = 0
  }

  #resize(size: number): void {
    // Not from the pool of small buffers, which would keep those of others in memory.
    const buffer = Buffer.allocUnsafeSlow(size)
    this.#buffer.copy(buffer, 0, 0, this.#length)
    this.#buffer = buffer
  }
}
