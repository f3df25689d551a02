// States of single sign-ons that were completed at this node, so that each is exchanged once.
const STATES_MAX = 10_000

/** Full, it forgets the oldest: the limit on returns still bounds how often one is exchanged. */
export function createUsedStates(keptMs: number, clock: () => number) {
  // By state, when it was used; in the order of use.
  const used = new Map<string, number>()

  function forget(): void {
    for (const [state, at] of used) {
      if (used.size <= STATES_MAX && at > clock() - keptMs) return
      used.delete(state)
    }
  }

  return {
    /** False if it was used before. */
    use(state: string): boolean {
      if (used.has(state)) return false
      used.set(state, clock())
      forget()
      return true
    },
  }
}
