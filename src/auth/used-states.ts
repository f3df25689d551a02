// States of completed single sign-ons at this node, so that each is used once.
const STATES_MAX = 10_000

/** Evicts the oldest state when full; the rate limit on redirects still limits reuse. */
export function createUsedStates(lifetimeMs: number, clock: () => number) {
  // Time of use by state, in the order of use.
  const used = new Map<string, number>()

  function evict(): void {
    for (const [state, at] of used) {
      if (used.size <= STATES_MAX && at > clock() - lifetimeMs) return
      used.delete(state)
    }
  }

  return {
    /** Returns false if the state was used before. */
    use(state: string): boolean {
      if (used.has(state)) return false
      used.set(state, clock())
      evict()
      return true
    },
  }
}
