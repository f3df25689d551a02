// Limits how many requests and connections of one workspace an edge carries at the same time.
const REQUESTS_PER_WORKSPACE_MAX = 4_000

export class RequestQuota {
  readonly #active = new Map<string, number>()

  /** Acquires a slot, or returns false if the workspace is at its limit. */
  acquire(workspace: string): boolean {
    const active = this.#active.get(workspace) ?? 0
    if (active >= REQUESTS_PER_WORKSPACE_MAX) return false
    this.#active.set(workspace, active + 1)
    return true
  }

  release(workspace: string): void {
    const active = (this.#active.get(workspace) ?? 0) - 1
    if (active > 0) this.#active.set(workspace, active)
    else this.#active.delete(workspace)
  }
}
