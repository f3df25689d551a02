// The slots of a node for endpoints that it sends to at the same time. If all are taken, a workspace with few
// slots displaces one of the workspace with the most: that delivery is aborted and repeated later.

import { SharedSlots } from '../../lib/shared-slots.ts'
import type { ClaimedEndpoint, ClaimLimits } from '../domain/webhooks/queue.ts'

/** Share of slots for failing endpoints. */
const FAILING_SHARE = 0.5

export class DeliverySlots {
  readonly #max: number
  /** The owners of the slots are workspaces. */
  readonly #turns = new SharedSlots<AbortController>()
  readonly #turnByEndpoint = new Map<string, AbortController>()
  #failing = 0

  constructor(max: number) {
    this.#max = max
  }

  /** Limits for free slots, for workspaces that have none. */
  limitsForIdle(): ClaimLimits {
    return this.#limits(this.#free, [...this.#turns.owners()])
  }

  /** Limits for free slots, for all workspaces. */
  limitsForAll(): ClaimLimits {
    return this.#limits(this.#free, [])
  }

  /** Limits for one slot to displace, for workspaces with fewer slots than others. */
  limitsForLighter(): ClaimLimits {
    const excluded = this.#turns.ownersUnableToDisplace()
    return this.#limits(this.#free <= 0 && excluded ? 1 : 0, excluded ?? [])
  }

  /** The signal is aborted if the slot is displaced, or if the endpoint is claimed again. */
  take({ id, workspace_id: workspaceId, failing_since }: ClaimedEndpoint) {
    const turn = new AbortController()
    const failing = failing_since === null ? 0 : 1
    const earlier = this.#turnByEndpoint.get(id)
    // A change of the endpoint ended the earlier claim.
    if (earlier) {
      earlier.abort()
      this.#turns.delete(workspaceId, earlier)
    }
    this.#turnByEndpoint.set(id, turn)
    if (this.#free <= 0) this.#turns.displace(workspaceId, 'oldest')?.abort()
    this.#turns.add(workspaceId, turn)
    this.#failing += failing
    const release = () => {
      this.#turns.delete(workspaceId, turn)
      this.#failing -= failing
      if (this.#turnByEndpoint.get(id) === turn) this.#turnByEndpoint.delete(id)
    }
    return { signal: turn.signal, release }
  }

  get #free(): number {
    return this.#max - this.#turns.size
  }

  #limits(limit: number, exceptWorkspaces: string[]): ClaimLimits {
    return { limit, failingLimit: Math.ceil(this.#max * FAILING_SHARE) - this.#failing, exceptWorkspaces }
  }
}
