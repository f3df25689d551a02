// Claims the names of tunnels. One request is sent at a time, with the claims of many tunnels: when thousands
// of clients connect at once, the control plane gets a few large requests, which do not delay syncs.
import type { ClaimedTunnel, ClaimResult } from '../api.ts'
import { ControlPlaneError } from '../control-plane.ts'

const CLAIMS_PER_REQUEST_MAX = 250
const WAITING_MAX = 20_000
const WAITING_PER_WORKSPACE_MAX = 1_000

interface Claim {
  readonly tunnel: ClaimedTunnel
  /** The grant of the tunnel's key. */
  readonly grant: string
}

interface WaitingClaim extends Claim {
  readonly result: PromiseWithResolvers<ClaimResult>
}

export class ClaimQueue {
  readonly #send: (claims: readonly Claim[]) => Promise<ClaimResult[]>
  /** By workspace. The first workspace of the map is the next one whose turn it is. */
  readonly #waiting = new Map<string, WaitingClaim[]>()
  #size = 0
  #isSending = false

  constructor(send: (claims: readonly Claim[]) => Promise<ClaimResult[]>) {
    this.#send = send
  }

  /** Throws if too many claims wait. */
  requireSpace(workspace: string): void {
    const waiting = this.#waiting.get(workspace)?.length ?? 0
    if (this.#size >= WAITING_MAX || waiting >= WAITING_PER_WORKSPACE_MAX)
      throw new ControlPlaneError('Too many names are being claimed. Retry shortly.', 429)
  }

  /** Rejects with the error of `send`. */
  claim(tunnel: ClaimedTunnel, grant: string): Promise<ClaimResult> {
    const { workspace } = tunnel
    this.requireSpace(workspace)
    const result = Promise.withResolvers<ClaimResult>()
    const queue = this.#waiting.get(workspace) ?? []
    queue.push({ tunnel, grant, result })
    this.#waiting.set(workspace, queue)
    this.#size += 1
    if (!this.#isSending) void this.#sendAll()
    return result.promise
  }

  async #sendAll(): Promise<void> {
    this.#isSending = true
    // Tunnels that are opened in the same turn of the event loop share the first request.
    await new Promise((resolve) => setImmediate(resolve))
    while (this.#size > 0) await this.#settle(this.#take(CLAIMS_PER_REQUEST_MAX))
    this.#isSending = false
  }

  async #settle(claims: readonly WaitingClaim[]): Promise<void> {
    try {
      const results = await this.#send(claims)
      for (const [index, { result }] of claims.entries()) result.resolve(results[index] as ClaimResult)
    } catch (error) {
      const status = error instanceof ControlPlaneError ? error.status : undefined
      // A tunnel that the control plane considers invalid must not affect the others.
      if (status === 400 && claims.length > 1) for (const claim of claims) await this.#settle([claim])
      else {
        // Without a response, the waiting claims would fail too, one timeout after the other.
        const waiting = status === undefined ? this.#take(this.#size) : []
        for (const { result } of [...claims, ...waiting]) result.reject(error)
      }
    }
  }

  /** Workspaces take turns, so that one with many tunnels does not delay the others. */
  #take(max: number): WaitingClaim[] {
    const claims: WaitingClaim[] = []
    // A workspace with more claims is moved to the end of the map, so this loop reaches it again.
    for (const [workspace, queue] of this.#waiting) {
      if (claims.length === max) break
      claims.push(queue.shift() as WaitingClaim)
      this.#waiting.delete(workspace)
      if (queue.length > 0) this.#waiting.set(workspace, queue)
    }
    this.#size -= claims.length
    return claims
  }
}
