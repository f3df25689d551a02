// What this edge carries: all requests and connections in progress, and whether it may carry any.
import { DenseSet } from '../lib/collections/dense-set.ts'
import type { VisitorError } from './error-responses/causes.ts'
import type { UpstreamClient } from './tunnels/upstream-client.ts'

/** About as long as a sync takes that is repeated after an outage. */
export const CUT_OFF: VisitorError = { cause: 'edge_cut_off', headers: { 'retry-after': '5' } }

interface Carried {
  edgePosition: number
  /** Undefined if none was picked. */
  readonly client: UpstreamClient | undefined
  /** Ends it, with an error response if it has none yet. */
  abort(error: VisitorError): void
  /** Ends the response, or if there is none yet, the attempt to get one from this client. */
  abortResponse(): void
}

export class Traffic {
  readonly #carried = new DenseSet<'edgePosition', Carried>('edgePosition')
  /**
   * False once the lease of the control plane has expired. Then all traffic is aborted, before this returns
   * for the first time.
   */
  readonly mayCarry: () => boolean

  constructor(mayCarry: () => boolean) {
    this.mayCarry = mayCarry
  }

  add(carried: Carried): void {
    this.#carried.add(carried)
  }

  delete(carried: Carried): void {
    this.#carried.delete(carried)
  }

  abortAll(): void {
    for (const carried of this.#carried) carried.abort(CUT_OFF)
  }

  /**
   * Ends what clients carry, and what they have completed and the visitor is still reading. They must not be
   * picked any more: requests without a response may begin again at others.
   */
  abortResponses(matches: (client: UpstreamClient) => boolean): void {
    for (const carried of this.#carried)
      if (carried.client && matches(carried.client)) carried.abortResponse()
  }
}
