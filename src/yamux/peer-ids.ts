// The stream ids that the peer has used. They rise, but a peer that opens streams concurrently may send them
// slightly out of order, as the Go library does.
import { ProtocolError } from './frame.ts'

const SKIPPED_MAX = 1_024

export class PeerIds {
  readonly #parity: number
  #highest: number
  /** Ids below the highest that are not used yet. */
  readonly #skipped = new Set<number>()

  constructor(isPeerClient: boolean) {
    this.#parity = isPeerClient ? 1 : 0
    this.#highest = isPeerClient ? -1 : 0
  }

  isPeers(id: number): boolean {
    return id % 2 === this.#parity
  }

  hasUsed(id: number): boolean {
    return id <= this.#highest && !this.#skipped.has(id)
  }

  use(id: number): void {
    if (!this.isPeers(id)) throw new ProtocolError(`stream id ${id} has the wrong parity`)
    if (id <= this.#highest) {
      if (!this.#skipped.delete(id)) throw new ProtocolError(`stream id ${id} is used twice`)
      return
    }
    for (let each = Math.max(this.#highest + 2, id - 2 * SKIPPED_MAX); each < id; each += 2) this.#skip(each)
    this.#highest = id
  }

  #skip(id: number): void {
    this.#skipped.add(id)
    if (this.#skipped.size <= SKIPPED_MAX) return
    const [oldest] = this.#skipped
    this.#skipped.delete(oldest as number)
  }
}
