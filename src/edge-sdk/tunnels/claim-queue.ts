// Tunnels that wait until their names are claimed. One claim is sent at a time, with those that wait: when
// thousands of clients connect at once, the control plane gets a few large claims instead of thousands, and
// syncs are not delayed by them.
import type { ClaimedTunnel, ClaimResult } from '../api.ts'
import { ControlPlaneError } from '../control-plane.ts'

/** Maximum number of tunnels in a claim. */
const CLAIM_ITEMS_MAX = 250
/** Tunnels that may wait, in total and of each workspace. */
const WAITING_MAX = 20_000
const WAITING_PER_WORKSPACE_MAX = 1_000

interface WaitingClaim {
  readonly tunnel: ClaimedTunnel
  /** Of its key. */
  readonly grant: string
}

interface Waiting extends WaitingClaim {
  readonly decided: PromiseWithResolvers<ClaimResult>
}

export class ClaimQueue {
  readonly #send: (claims: readonly WaitingClaim[]) => Promise<ClaimResult[]>
  /** By workspace; those whose turn is next are first. */
  readonly #waiting = new Map<string, Waiting[]>()
  #size = 0
  #isSending = false

  constructor(send: (claims: readonly WaitingClaim[]) => Promise<ClaimResult[]>) {
    this.#send = send
  }

  /** Throws if too many wait. */
  requireSpace(workspace: string): void {
    const waiting = this.#waiting.get(workspace)?.length ?? 0
    if (this.#size >= WAITING_MAX || waiting >= WAITING_PER_WORKSPACE_MAX)
      throw new ControlPlaneError('Too many names are being claimed. Retry shortly.', 429)
  }

  /** Rejects with the error of `send`, which all tunnels of a claim share. */
  claim(tunnel: ClaimedTunnel, grant: string): Promise<ClaimResult> {
    const { workspace } = tunnel
    this.requireSpace(workspace)
    const decided = Promise.withResolvers<ClaimResult>()
    const queue = this.#waiting.get(workspace) ?? []
    queue.push({ tunnel, grant, decided })
    this.#waiting.set(workspace, queue)
    this.#size += 1
    if (!this.#isSending) void this.#sendAll()
    return decided.promise
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    // Those that connect in the same turn of the event loop share the first claim.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#size > 0) {
      const claims = this.#take()
      try {
        const results = await this.#send(claims)
        for (const [index, { decided }] of claims.entries()) decided.resolve(results[index] as ClaimResult)
      } catch (error) {
        for (const { decided } of claims) decided.reject(error)
      }
    }
    this.#isSending = false
  }

  /** Workspaces take turns, so that one with many tunnels does not delay the others. */
  #take(): Waiting[] {
    const claims: Waiting[] = []
    while (claims.length < CLAIM_ITEMS_MAX && this.#waiting.size > 0)
      for (const [workspace, queue] of this.#waiting) {
        if (claims.length === CLAIM_ITEMS_MAX) break
        claims.push(queue.shift() as Waiting)
        this.#waiting.delete(workspace)
        if (queue.length > 0) this.#waiting.set(workspace, queue)
      }
    this.#size -= claims.length
    return claims
  }
}
