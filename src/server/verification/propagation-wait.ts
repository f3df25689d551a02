// Waits until a change is propagated: each node has acknowledged it, or its lease has expired. All waits of a
// process share the queries, normally one at a time.
import { isSamePosition, type Position } from '../store/change-log/entries.ts'
import { type AcknowledgedPosition, deleteNodesBehind, readAcknowledged } from '../store/change-log/nodes.ts'
import type { Store } from '../store/engine/store.ts'
import { LEASE_MS } from './lease.ts'

/** Allowance for monotonic clocks that run at different rates. */
const DRIFT_MS = 50
/** Timers are not exact enough for shorter pauses, which are skipped: the query itself takes as long. */
const PAUSE_MIN_MS = 2
const PAUSE_MAX_MS = 40
/** Limits of a pause between queries, as shares of the oldest wait. */
const PAUSE_SHARES = { min: 0.1, max: 0.5 }
const CLEANUP_TIMEOUT_MS = 500

export interface PropagationWait {
  /**
   * Call it right after the commit. A lease renewed before the commit expires within its length after the
   * commit, so this process's clock is enough. Never rejects.
   */
  wait(position: Position): Promise<void>
}

interface Waiter {
  readonly position: Position
  readonly committedAt: number
  timer?: NodeJS.Timeout
  resolve(): void
}

export function createPropagationWait(store: Store): PropagationWait {
  const waiters = new Set<Waiter>()
  /** The longest lease of a node that was read so far: another version may have a longer one. */
  let leaseMs = LEASE_MS
  let isPolling = false

  async function poll(): Promise<void> {
    isPolling = true
    // Lets this node send its acknowledgment first, on the same control connection.
    await sleep(0)
    while (waiters.size > 0) {
      // A waiter added during the query must wait for the next one: this query may miss nodes that registered
      // before the waiter's commit.
      const included = [...waiters]
      // A query that takes longer is abandoned, and may run beside the next one until its statement timeout.
      const nodes = await resultWithin(LEASE_MS, readAcknowledged(store.controlConnection.db))
      if (nodes) {
        leaseMs = Math.max(leaseMs, ...nodes.map((node) => node.leaseMs))
        for (const waiter of included) settle(waiter, nodes)
      }
      const [oldest] = waiters
      if (oldest) await sleep(pauseMs(performance.now() - oldest.committedAt, propagatedShare(oldest, nodes)))
    }
    isPolling = false
  }

  function settle(waiter: Waiter, nodes: readonly AcknowledgedPosition[]): void {
    const isPropagated = nodes.every((node) => hasReached(node, waiter.position))
    if (!isPropagated || !waiters.delete(waiter)) return
    clearTimeout(waiter.timer)
    waiter.resolve()
  }

  /** Checks again when the timer fires, because it may be early, or a longer lease may have been read. */
  function scheduleExpiry(waiter: Waiter): void {
    const leftMs = waiter.committedAt + leaseMs + DRIFT_MS - performance.now()
    if (leftMs > 0) {
      waiter.timer = setTimeout(scheduleExpiry, leftMs, waiter)
      return
    }
    waiters.delete(waiter)
    // So that the next revocation does not wait for these nodes. Each registers before it uses its cache.
    const cleanup = store.transaction((db) => deleteNodesBehind(db, waiter.position))
    void resultWithin(CLEANUP_TIMEOUT_MS, cleanup).then(waiter.resolve)
  }

  return {
    wait(position) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const waiter: Waiter = { position, committedAt: performance.now(), resolve }
      waiters.add(waiter)
      scheduleExpiry(waiter)
      if (!isPolling) void poll()
      return promise
    },
  }
}

/** Whether nodes or edges that acknowledged one position have applied the change at another. */
export const hasReached = (node: Position & { isInLog: boolean }, position: Position): boolean =>
  isSamePosition(node, position) || (node.isInLog && node.sequence > position.sequence)

/** The share of the nodes that have applied the change. */
function propagatedShare({ position }: Waiter, nodes: readonly AcknowledgedPosition[] = []): number {
  let [reached, all] = [0, 0]
  for (const node of nodes) {
    all += node.count
    if (hasReached(node, position)) reached += node.count
  }
  return all === 0 ? 0 : reached / all
}

/** Half of the time that the other nodes need at the rate so far, bounded: one may never acknowledge. */
function pauseMs(waitedMs: number, share: number): number {
  const leftMs = share === 0 ? Number.POSITIVE_INFINITY : waitedMs * (1 / share - 1)
  const pause = Math.min(Math.max(leftMs / 2, PAUSE_SHARES.min * waitedMs), PAUSE_SHARES.max * waitedMs)
  return Math.min(pause, PAUSE_MAX_MS)
}

/** Undefined if the promise rejects or takes too long. */
export async function resultWithin<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms, undefined)
  try {
    return await Promise.race([promise.catch(() => undefined), timeout])
  } finally {
    clearTimeout(timer)
  }
}

/** Lets the event loop run, even if the pause is too short for a timer. */
const sleep = (ms: number) =>
  new Promise<void>((resolve) => {
    if (ms < PAUSE_MIN_MS) setImmediate(resolve)
    else setTimeout(resolve, ms)
  })
