// Everybody who is at work at the same time, so that all can be told to stop and be waited for.

export interface Crowd {
  /** Something that goes on beside everything else. */
  goes(work: Promise<unknown>): void
  /** The same again and again, until `stop`. */
  repeats(work: (turn: number) => Promise<unknown>): void
  readonly isStopped: boolean
  /** Begins nothing new, and waits for what is under way. Throws if anything went wrong, now or earlier. */
  stop(): Promise<void>
}

export function createCrowd(): Crowd {
  const working = new Set<Promise<unknown>>()
  const failures: unknown[] = []
  let stopped = false
  const crowd: Crowd = {
    goes(work) {
      const watched = work.catch((error) => failures.push(error)).finally(() => working.delete(watched))
      working.add(watched)
    },
    repeats(work) {
      crowd.goes(
        (async () => {
          for (let turn = 1; !stopped; turn++) await work(turn)
        })(),
      )
    },
    get isStopped() {
      return stopped
    },
    async stop() {
      stopped = true
      while (working.size > 0) await Promise.all(working)
      if (failures.length > 0) throw failures[0]
    },
  }
  return crowd
}
