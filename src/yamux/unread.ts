// Received payloads that the reader of a stream has not taken yet. They are slices of larger reads from the
// connection. Small ones are copied, so that one byte does not keep 64 KiB in memory, and joined, so that
// frames of one byte do not cost a hundred bytes each.
import { compact } from './buffers.ts'

const JOIN_BYTES_MAX = 2 * 1024
const JOINED_BYTES = 4 * 1024

export class Unread {
  #chunks: Buffer[] = []
  /** Free space at the end of the last chunk. */
  #free = 0
  #bytes = 0

  get bytes(): number {
    return this.#bytes
  }

  add(payload: Buffer): void {
    this.#bytes += payload.length
    if (payload.length > JOIN_BYTES_MAX) {
      this.#trimLast()
      this.#chunks.push(compact(payload))
    } else this.#join(payload)
  }

  shift(): Buffer | undefined {
    if (this.#chunks.length === 1) this.#trimLast()
    const chunk = this.#chunks.shift()
    if (chunk) this.#bytes -= chunk.length
    return chunk
  }

  clear(): void {
    this.#chunks = []
    this.#free = 0
    this.#bytes = 0
  }

  #trimLast(): void {
    if (this.#free === 0) return
    const last = this.#chunks.pop() as Buffer
    this.#chunks.push(last.subarray(0, last.length - this.#free))
    this.#free = 0
  }

  #join(payload: Buffer): void {
    const last = this.#chunks.at(-1)
    let copied = 0
    if (last && this.#free > 0) {
      copied = payload.copy(last, last.length - this.#free)
      this.#free -= copied
    }
    if (copied === payload.length) return
    const chunk = Buffer.allocUnsafeSlow(JOINED_BYTES)
    this.#free = JOINED_BYTES - payload.copy(chunk, 0, copied)
    this.#chunks.push(chunk)
  }
}
