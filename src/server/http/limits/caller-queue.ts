// Limits how much work runs at the same time for each caller, e.g. a network or a user. The rest waits.

/** The longest wait, and the error of work that has not begun by then. */
interface WaitLimit {
  ms: number
  error: () => Error
}

/**
 * Do not nest calls of `run`: they would deadlock. Do not call it in a transaction, which would stay open
 * while the work waits.
 */
export function createCallerQueue(runningMax: number, waitLimit?: WaitLimit) {
  /** Only callers with work in progress. */
  const callers = new Map<string, { running: number; waiting: Set<() => void> }>()

  return {
    countWaiting: (name: string): number => callers.get(name)?.waiting.size ?? 0,

    async run<T>(name: string, work: () => T | Promise<T>): Promise<T> {
      const caller = callers.get(name) ?? { running: 0, waiting: new Set() }
      callers.set(name, caller)
      if (caller.running < runningMax) caller.running += 1
      else await waitForTurn(caller.waiting, waitLimit)
      try {
        return await work()
      } finally {
        const [next] = caller.waiting
        if (next) next()
        else caller.running -= 1
        if (caller.running === 0) callers.delete(name)
      }
    },
  }
}

function waitForTurn(waiting: Set<() => void>, limit: WaitLimit | undefined): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>()
  const begin = () => {
    clearTimeout(timer)
    waiting.delete(begin)
    resolve()
  }
  const timer =
    limit &&
    setTimeout(() => {
      waiting.delete(begin)
      reject(limit.error())
    }, limit.ms)
  waiting.add(begin)
  return promise
}
