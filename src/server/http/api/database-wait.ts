// Waits while the database is unreachable, for requests whose failure would close open tunnels.
import { setTimeout as sleep } from 'node:timers/promises'
import { toFault } from '../../domain/fault.ts'
import type { MaybePromise } from '../../verification/verify.ts'

const CHECK_INTERVAL_MS = 200
const WAITING_MAX = 1_000

/**
 * Repeats an attempt that failed with `unavailable` when the node is up to date again: many waiting requests
 * must not query a database that is starting. `closing` is aborted when the server stops.
 */
export function createDatabaseWait(isUpToDate: () => boolean, closing: AbortSignal) {
  let waiting = 0

  async function untilUpToDate(mayWait: () => boolean): Promise<boolean> {
    do {
      if (closing.aborted || !mayWait()) return false
      await sleep(CHECK_INTERVAL_MS)
    } while (!isUpToDate())
    return true
  }

  return async <T>(attempt: () => MaybePromise<T>, mayWait: () => boolean): Promise<T> => {
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
