// Collects a part of a message that ends with a delimiter, and may arrive in pieces of any size.
const START_BYTES = 1024
const EMPTY = Buffer.alloc(0)

export class LineBuffer {
  readonly #delimiter: string
  #buffer: Buffer = EMPTY
  #bytes = 0

  constructor(delimiter: string) {
    this.#delimiter = delimiter
  }

  /** Bytes of the part that is being collected. */
  get bytes(): number {
    return this.#bytes
  }

  /** Memory that is used for it. */
  get allocated(): number {
    return this.#buffer.length
  }

  /** The first bytes of it, in latin1. */
  start(bytesMax: number): string {
    return this.#buffer.toString('latin1', 0, Math.min(bytesMax, this.#bytes))
  }

  /**
   * Adds what was received from `start` on. Returns the part without its delimiter, in latin1, and where the
   * next one starts; undefined if the delimiter has not arrived.
   */
  add(received: Buffer, start: number): { text: string; next: number } | undefined {
    if (this.#bytes === 0) {
      // Most parts arrive whole, and are not copied.
      const end = received.indexOf(this.#delimiter, start, 'latin1')
      if (end >= 0)
        return { text: received.toString('latin1', start, end), next: end + this.#delimiter.length }
    }
    const before = this.#bytes
    this.#append(received, start)
    const overlap = Math.max(0, before - this.#delimiter.length + 1)
    const collected = this.#buffer.subarray(0, this.#bytes)
    const end = collected.indexOf(this.#delimiter, overlap, 'latin1')
    if (end < 0) return undefined
    this.#bytes = 0
    // The rest of a message may take long.
    if (this.#buffer.length > START_BYTES) this.#buffer = EMPTY
    return { text: collected.toString('latin1', 0, end), next: start + end + this.#delimiter.length - before }
  }

  #append(received: Buffer, start: number): void {
    const bytes = this.#bytes + received.length - start
    if (bytes > this.#buffer.length) {
      const larger = Buffer.allocUnsafe(Math.max(START_BYTES, 2 * this.#buffer.length, bytes))
      this.#buffer.copy(larger, 0, 0, this.#bytes)
      this.#buffer = larger
    }
    received.copy(this.#buffer, this.#bytes, start)
    this.#bytes = bytes
  }
}
