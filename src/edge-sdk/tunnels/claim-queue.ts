// Tunnels that wait until their names are claimed. One claim is sent at a time, for many waiting tunnels:
// when thousands of clients connect at once, the control plane gets a few large claims, which do not delay
// syncs.
import type { ClaimedTunnel, ClaimResult } from '../api.ts'
import { ControlPlaneError } from '../control-plane.ts'

/** Maximum number of tunnels in a claim. */
const CLAIM_ITEMS_MAX = 250
/** How many tunnels may wait. */
const WAITING_MAX = 20_000
const WAITING_PER_WORKSPACE_MAX = 1_000

interface WaitingClaim {
  readonly tunnel: ClaimedTunnel
  /** The grant of the tunnel's key. */
  readonly grant: string
}

interface Waiting extends WaitingClaim {
  readonly decided: PromiseWithResolvers<ClaimResult>
}

export class ClaimQueue {
  readonly #send: (claims: readonly WaitingClaim[]) => Promise<ClaimResult[]>
  /** By workspace, in the order of their turns. */
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

  /** Rejects with the error of `send`. */
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
    // Tunnels that are opened in the same turn of the event loop share the first claim.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#size > 0) await this.#decide(this.#take(CLAIM_ITEMS_MAX))
    this.#isSending = false
  }

  async #decide(claims: readonly Waiting[]): Promise<void> {
    try {
      const results = await this.#send(claims)
      for (const [index, { decided }] of claims.entries()) decided.resolve(results[index] as ClaimResult)
    } catch (error) {
      const status = error instanceof ControlPlaneError ? error.status : undefined
      // A tunnel that the control plane considers invalid must not affect the others.
      if (status === 400 && claims.length > 1) for (const claim of claims) await this.#decide([claim])
      else {
        // Without a response, the waiting claims would fail too, one timeout after the other.
        const waiting = status === undefined ? this.#take(this.#size) : []
        for (const { decided } of [...claims, ...waiting]) decided.reject(error)
      }
    }
  }

  /** Workspaces take turns, so that one with many tunnels does not delay the others. */
  #take(max: number): Waiting[] {
    const claims: Waiting[] = []
    // A workspace that has more moves to the end of the map, and so gets another turn in this loop.
    for (const [workspace, queue] of this.#waiting) {
      if (claims.length === max) break
      claims.push(queue.shift() as Waiting)
      this.#waiting.delete(workspace)
      if (queue.length > 0) this.#waiting.set(workspace, queue)
    }
    this.#size -= claims.length
    return claims
  }
}
