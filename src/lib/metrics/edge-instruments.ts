// The counters of an edge.
import { RequestDurations } from './request-durations.ts'

/**
 * Why a request or connection was ended: to make room for another network, because of its memory, or because
 * it was too slow for a tunnel that is more than half full.
 */
export type EvictionReason = 'capacity' | 'memory' | 'slow'

const VERDICTS = ['valid', 'unknown', 'revoked', 'expired', 'archived', 'unavailable']

export class EdgeInstruments {
  readonly requests = new RequestDurations()
  /** Requests through tunnels, until the head of the response. */
  readonly tunneled = this.requests.of('tunnel', 'request')
  readonly transferred = { requests: 0, bytesIn: 0, bytesOut: 0 }
  /** Requests that reached no tunnel client, by status. */
  readonly rejected: Record<number, number> = { 401: 0, 403: 0, 404: 0, 429: 0, 503: 0 }
  readonly evicted: Record<EvictionReason, number> = { capacity: 0, memory: 0, slow: 0 }
  readonly verdicts: Record<string, number> = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0]))

  countRejected(status: number): void {
    const count = this.rejected[status]
    if (count !== undefined) this.rejected[status] = count + 1
  }

  /** Verdicts that only a later control plane has are not counted. */
  countVerdict(verdict: string): void {
    const count = this.verdicts[verdict]
    if (count !== undefined) this.verdicts[verdict] = count + 1
  }
}
