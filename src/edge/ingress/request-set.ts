// The requests and connections in progress of a tunnel, or of all tunnels of a workspace. When all slots are
// taken, a network with fewer slots takes one from the network that has the most.

import { DenseSet } from '../../lib/collections/dense-set.ts'
import { KeyedCounter } from '../../lib/collections/keyed-counter.ts'
import type { EvictionReason } from '../../lib/metrics/edge-instruments.ts'
import { clientNetwork } from '../../lib/net/client-limit.ts'

/** Where a request stores its position in the set of its tunnel, and of its workspace. */
type PositionKey = 'tunnelPosition' | 'workspacePosition'

/** What the set needs of a request. */
interface Entry extends Record<PositionKey, number> {
  readonly network: string
  transferRate(now: number): number
  /** False if less than `bytesMin` was transferred since the last check because the visitor is slow. */
  checkProgress(bytesMin: number): boolean
  /** Ends the request. Its slot is free when this returns. */
  evict(reason: EvictionReason): void
  /** Retries a request that waits for its response on a stream which has carried others. */
  retryIfReused?(): void
}

export class RequestSet {
  readonly #max: number
  readonly #requests: DenseSet<PositionKey, Entry>
  readonly #perNetwork = new KeyedCounter()

  constructor(max: number, key: PositionKey) {
    this.#max = max
    this.#requests = new DenseSet(key)
  }

  get size(): number {
    return this.#requests.size
  }

  /** More than half of the slots are taken. */
  get isCrowded(): boolean {
    return this.#requests.size > this.#max / 2
  }

  retryReused(): void {
    for (const request of [...this.#requests]) request.retryIfReused?.()
  }

  add(request: Entry): void {
    this.#requests.add(request)
    this.#perNetwork.add(request.network, 1)
  }

  delete(request: Entry): void {
    this.#requests.delete(request)
    this.#perNetwork.add(request.network, -1)
  }

  byNetwork(): Map<string, Entry[]> {
    return Map.groupBy(this.#requests, ({ network }) => network)
  }

  /**
   * Whether there is a slot for the client. If all are taken, evicts the slowest request of the largest
   * network.
   */
  makeRoom(client: string | undefined): boolean {
    if (this.#requests.size < this.#max) return true
    // Only counts: a flood of requests that are rejected must not cost a look at each request in progress.
    const [largest, count] = this.#perNetwork.largest()
    // Otherwise two networks would keep displacing each other.
    if (count <= this.#perNetwork.get(clientNetwork(client)) + 1) return false
    findSlowest(this.#requests, largest)?.evict('capacity')
    return true
  }
}

function findSlowest(requests: Iterable<Entry>, network: string): Entry | undefined {
  const now = performance.now()
  let slowest: Entry | undefined
  let slowestRate = Number.POSITIVE_INFINITY
  for (const request of requests) {
    if (request.network !== network) continue
    const rate = request.transferRate(now)
    if (rate < slowestRate) {
      slowest = request
      slowestRate = rate
    }
  }
  return slowest
}
