// Limits how much work runs at the same time for each caller, e.g. a network or a user. The rest waits.

export type CallerQueue = ReturnType<typeof createCallerQueue>

/**
 * Do not nest calls: they would deadlock. Do not call it in a transaction, which would stay open while it
 * waits.
 */
export function createCallerQueue(runningMax: number) {
  /** Only callers with work in progress. */
  const callers = new Map<string, { running: number; waiting: (() => void)[] }>()

  return {
    countWaiting: (name: string): number => callers.get(name)?.waiting.length ?? 0,

    async run<T>(name: string, work: () => T | Promise<T>): Promise<T> {
      const caller = callers.get(name) ?? { running: 0, waiting: [] }
      callers.set(name, caller)
      if (caller.running < runningMax) caller.running += 1
      else await new Promise<void>((resolve) => caller.waiting.push(resolve))
      try {
        return await work()
      } finally {
        const next = caller.waiting.shift()
        if (next) next()
        else caller.running -= 1
        if (caller.running === 0) callers.delete(name)
      }
    },
  }
}
