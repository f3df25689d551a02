// Extra connections of a client to an edge with several workers: when to ask for one, so that workers need
// not forward requests to the one with the first connection, and when to close it.
import { MINUTE_MS } from '../../lib/time.ts'
import type { UpstreamClient } from './upstream-client.ts'

const WINDOW_MS = 1_000
/** Above this, forwarding costs more than a connection with its pings and its entry at the control plane. */
const FORWARDED_PER_SECOND_MIN = 100
/**
 * How long to wait before asking again: the connection may reach a worker that has one already. Doubled for
 * as long as it does not help.
 */
const ASK_INTERVAL = { minMs: 2_000, maxMs: MINUTE_MS }
const UNUSED_MS = MINUTE_MS

/** How many requests other workers forward to a client. */
export class ForwardedRate {
  readonly #ask: () => void
  #windowStart = Number.NEGATIVE_INFINITY
  #requests = 0
  #askedAt = Number.NEGATIVE_INFINITY
  #intervalMs = ASK_INTERVAL.minMs

  constructor(ask: () => void) {
    this.#ask = ask
  }

  onRequest(now: number): void {
    if (now - this.#windowStart >= WINDOW_MS) {
      this.#windowStart = now
      this.#requests = 0
    }
    this.#requests += 1
    const sinceAskedMs = now - this.#askedAt
    if (this.#requests < FORWARDED_PER_SECOND_MIN || sinceAskedMs < this.#intervalMs) return
    const hasHelped = sinceAskedMs >= 2 * this.#intervalMs
    this.#intervalMs = hasHelped ? ASK_INTERVAL.minMs : Math.min(2 * this.#intervalMs, ASK_INTERVAL.maxMs)
    this.#askedAt = now
    this.#ask()
  }
}

/** Asks the client to close its connection when it has had no request for a minute. Returns the timer. */
export function startUnusedCheck(client: Pick<UpstreamClient, 'totals' | 'active'> & { goAway(): void }) {
  let { requests } = client.totals
  return setInterval(() => {
    if (client.totals.requests === requests && client.active === 0) client.goAway()
    requests = client.totals.requests
  }, UNUSED_MS).unref()
}
