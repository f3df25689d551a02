// Limits how often a client may present a wrong password: some at once, then one per interval (GCRA).
import { ipPrefix } from '../../lib/net/ip-address.ts'
import { BoundedMap } from '../bounded-map.ts'

const BURST = 10
const INTERVAL_MS = 10_000
/** Beyond it the address whose last attempt is the oldest is evicted. */
const ADDRESSES_MAX = 10_000

export class AttemptThrottle {
  /** When all attempts of a network are available again; the latest attempt last. */
  readonly #fullAt = new BoundedMap<string, number>(ADDRESSES_MAX)

  /** Counts an attempt of an address or host, or returns how long to wait before the next one. */
  consume(client: string): number {
    const network = ipPrefix(client, 48)
    const now = performance.now()
    const fullAt = Math.max(this.#fullAt.get(network) ?? 0, now)
    const waitMs = fullAt - now - (BURST - 1) * INTERVAL_MS
    if (waitMs > 0) return waitMs
    this.#fullAt.set(network, fullAt + INTERVAL_MS)
    return 0
  }

  /** The attempt had the right password, or was not verified. */
  refund(client: string): void {
    const network = ipPrefix(client, 48)
    const fullAt = this.#fullAt.get(network)
    if (fullAt !== undefined) this.#fullAt.set(network, fullAt - INTERVAL_MS)
  }
}
