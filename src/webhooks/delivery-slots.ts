// The slots of a node for endpoints that it sends to at the same time. If all are taken, a workspace with few
// of them displaces one of the workspace with the most, whose delivery is aborted and repeated later.
import type { ClaimedEndpoint, ClaimLimits } from '../domain/webhook-queue.ts'
import { SharedSlots } from '../shared-slots.ts'

/** Of all slots, those for endpoints whose last attempt failed. */
const FAILING_SHARE = 0.5

export class DeliverySlots {
  readonly #max: number
  /** By workspace. */
  readonly #turns = new SharedSlots<AbortController>()
  readonly #turnByEndpoint = new Map<string, AbortController>()
  #failing = 0

  constructor(max: number) {
    this.#max = max
  }

  /** For free slots, which workspaces that have none get first. */
  limitsOfIdle(): ClaimLimits {
    return this.#limits(this.#free, [...this.#turns.owners()])
  }

  /** For free slots. */
  limitsOfAll(): ClaimLimits {
    return this.#limits(this.#free, [])
  }

  /** For one slot that is displaced. */
  limitsOfLighter(): ClaimLimits {
    const heaviest = this.#turns.heaviestOwners()
    return this.#limits(this.#free <= 0 && heaviest ? 1 : 0, heaviest ?? [])
  }

  /** The signal is aborted if the slot is displaced, or if the endpoint is claimed again. */
  take({ id, workspace_id: workspaceId, failing_since }: ClaimedEndpoint) {
    const turn = new AbortController()
    const failing = failing_since === null ? 0 : 1
    // A change by an owner has ended the earlier claim.
    this.#turnByEndpoint.get(id)?.abort()
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
