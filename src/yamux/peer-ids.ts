// The stream ids that the peer has used. They rise, but a peer that opens streams concurrently may send them
// slightly out of order, as the Go library does.
import { ProtocolError } from './frame.ts'

/** How many of the latest ids are tracked; earlier ones count as used. A power of 2. */
const TRACKED_IDS = 1_024

const slotIndex = (id: number) => (id >>> 1) & (TRACKED_IDS - 1)

export class PeerIds {
  readonly #parity: number
  #highest: number
  /** Ring buffer with a 1 for each tracked id that is used, so that an id that skips many costs little. */
  #used: Uint8Array | undefined

  constructor(isPeerClient: boolean) {
    this.#parity = isPeerClient ? 1 : 0
    this.#highest = isPeerClient ? -1 : 0
  }

  isPeers(id: number): boolean {
    return id % 2 === this.#parity
  }

  hasUsed(id: number): boolean {
    if (id > this.#highest) return false
    return this.#highest - id >= 2 * TRACKED_IDS || this.#used?.[slotIndex(id)] === 1
  }

  use(id: number): void {
    if (!this.isPeers(id)) throw new ProtocolError(`stream id ${id} has the wrong parity`)
    if (this.hasUsed(id)) throw new ProtocolError(`stream id ${id} is used twice`)
    this.#used ??= new Uint8Array(TRACKED_IDS)
    if (id > this.#highest) this.#advance(id, this.#used)
    this.#used[slotIndex(id)] = 1
  }

  #advance(id: number, used: Uint8Array): void {
    const skipped = Math.min((id - this.#highest) / 2 - 1, TRACKED_IDS)
    for (let each = id - 2 * skipped; each < id; each += 2) used[slotIndex(each)] = 0
    this.#highest = id
  }
}
