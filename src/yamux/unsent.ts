// Chunks of a stream's current write that are not sent yet.
import type { Sender } from './sender.ts'

export class Unsent {
  #chunks: Buffer[] = []
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  add(chunk: Buffer): void {
    this.#chunks.push(chunk)
    this.#bytes += chunk.length
  }

  /** Passes the first `length` bytes to the sender. */
  sendTo(sender: Sender, length: number): void {
    this.#bytes -= length
    let remaining = length
    while (remaining > 0) {
      const chunk = this.#chunks[0] as Buffer
      if (chunk.length <= remaining) {
        this.#chunks.shift()
        sender.payload(chunk)
        remaining -= chunk.length
      } else {
        this.#chunks[0] = chunk.subarray(remaining)
        sender.payload(chunk.subarray(0, remaining))
        remaining = 0
      }
    }
  }

  clear(): void {
    this.#chunks = []
    this.#bytes = 0
  }
}
