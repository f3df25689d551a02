// The counters of an edge.
import { RequestDurations } from './request-durations.ts'

/**
 * Why a request or connection was ended: to make room for another network, because of its memory, or because
 * it was too slow for a tunnel that is more than half full.
 */
export type EvictionReason = 'capacity' | 'memory' | 'slow'

/**
 * Why a request could not be forwarded to an edge: the edge or its client was lost, the tunnel is not there
 * or has other access rules by now, its client has too many requests, or no edge with a client responds.
 */
const FORWARD_FAILURES = ['no_response', 'closed', 'tunnel_moved', 'tunnel_busy', 'tunnel_unreachable']

const VERDICTS = ['valid', 'unknown', 'revoked', 'expired', 'archived', 'unavailable']

export class EdgeInstruments {
  readonly requests = new RequestDurations()
  /** Requests through tunnels, until the head of the response. */
  readonly tunneled = this.requests.of('tunnel', 'request')
  readonly transferred = { requests: 0, bytesIn: 0, bytesOut: 0 }
  /** Requests that reached no tunnel client, by status. */
  readonly rejected: Record<number, number> = { 401: 0, 403: 0, 404: 0, 429: 0, 503: 0 }
  /** Requests that were sent to other edges, also those that were repeated. */
  forwarded = 0
  readonly forwardFailures: Record<string, number> = Object.fromEntries(
    FORWARD_FAILURES.map((cause) => [cause, 0]),
  )
  readonly evicted: Record<EvictionReason, number> = { capacity: 0, memory: 0, slow: 0 }
  readonly verdicts: Record<string, number> = Object.fromEntries(VERDICTS.map((verdict) => [verdict, 0]))

  countRejected(status: number): void {
    const count = this.rejected[status]
    if (count !== undefined) this.rejected[status] = count + 1
  }

  /** Other causes are those of the local server. */
  countForwardFailure(cause: string): void {
    const count = this.forwardFailures[cause]
    if (count !== undefined) this.forwardFailures[cause] = count + 1
  }

  /** Verdicts that only a later control plane has are not counted. */
  countVerdict(verdict: string): void {
    const count = this.verdicts[verdict]
    if (count !== undefined) this.verdicts[verdict] = count + 1
  }
}
