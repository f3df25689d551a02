// The minimum rate of the requests of a tunnel that is more than half full. It grows with the number of
// requests that a network has, so that many slow ones of the same network do not last.
import type { RequestSet } from './request-set.ts'

const INTERVAL_MS = 30_000
/** The minimum per interval, for each request that the network has. */
const BYTES_MIN = 1_024

export class ProgressCheck {
  readonly #requests: RequestSet
  #timer: NodeJS.Timeout | undefined

  constructor(requests: RequestSet) {
    this.#requests = requests
  }

  /** Call this when a request begins. */
  start(): void {
    if (this.#requests.isCrowded) this.#timer ??= setTimeout(() => this.#check(), INTERVAL_MS).unref()
  }

  #check(): void {
    this.#timer = undefined
    for (const [network, requests] of this.#requests.byNetwork()) {
      // Clients without an address are not one network.
      const bytesMin = BYTES_MIN * (network === '' ? 1 : requests.length)
      for (const request of requests) if (!request.checkProgress(bytesMin)) request.evict('slow')
    }
    this.start()
  }
}
