// Waits for a database that is unreachable, for requests whose failure ends something that is open.
import { setTimeout as sleep } from 'node:timers/promises'
import { toFault } from '../../domain/fault.ts'
import type { MaybePromise } from '../../verification/verify.ts'

const CHECK_INTERVAL_MS = 200
const WAITING_MAX = 1_000

interface DatabaseWaitOptions {
  isUpToDate: () => boolean
  /** Aborted when the server stops. */
  closing: AbortSignal
}

type DatabaseWait = <T>(attempt: () => MaybePromise<T>, mayWait: () => boolean) => Promise<T>

/**
 * Repeats an attempt that failed as `unavailable` when the node is up to date again, so that many waiting
 * requests do not query a database that is starting.
 */
export function createDatabaseWait({ isUpToDate, closing }: DatabaseWaitOptions): DatabaseWait {
  let waiting = 0

  async function untilUpToDate(mayWait: () => boolean): Promise<boolean> {
    do {
      if (closing.aborted || !mayWait()) return false
      await sleep(CHECK_INTERVAL_MS)
    } while (!isUpToDate())
    return true
  }

  return async (attempt, mayWait) => {
    for (;;) {
      try {
        return await attempt()
      } catch (error) {
        if (toFault(error).code !== 'unavailable' || waiting >= WAITING_MAX) throw error
        waiting += 1
        const isAvailable = await untilUpToDate(mayWait).finally(() => {
          waiting -= 1
        })
        if (!isAvailable) throw error
      }
    }
  }
}
