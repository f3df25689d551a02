// Waits until a change is propagated: each node has acknowledged it, or its lease has expired. The changes of
// a process share one query at a time, however many are waiting.
import { isSamePosition, type Position } from '../store/change-log.ts'
import { type AcknowledgedPosition, deleteNodesBehind, readAcknowledged } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'
import { LEASE_MS } from './lease.ts'

/** Allowance for monotonic clocks that run at different rates. */
const DRIFT_MS = 50
const PAUSE_MIN_MS = 2
const PAUSE_MAX_MS = 40
/** Of the time that the oldest waiter has waited: it learns at most so much too late. */
const PAUSE_SHARE = 0.25
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
  /** Nodes of another version may have a longer lease. */
  leaseMs: number
  timer?: NodeJS.Timeout
  resolve(): void
}

export function createPropagationWait(store: Store): PropagationWait {
  const waiters = new Set<Waiter>()
  let isPolling = false

  async function poll(): Promise<void> {
    isPolling = true
    while (waiters.size > 0) {
      // Not those that are added during the query: it may not see nodes that registered before their commit.
      const asking = [...waiters]
      const nodes = await withTimeout(LEASE_MS, readAcknowledged(store.db))
      if (nodes) for (const waiter of asking) settle(waiter, nodes)
      const [oldest] = waiters
      if (oldest) await sleep(pauseAfter(performance.now() - oldest.committedAt))
    }
    isPolling = false
  }

  function settle(waiter: Waiter, nodes: readonly AcknowledgedPosition[]): void {
    const behind = nodes.filter((node) => !hasReached(node, waiter.position))
    waiter.leaseMs = Math.max(waiter.leaseMs, ...behind.map(({ leaseMs }) => leaseMs))
    if (behind.length > 0 || !waiters.delete(waiter)) return
    clearTimeout(waiter.timer)
    waiter.resolve()
  }

  /** Checks again when the timer fires: the lease may have become longer, and timers may be early. */
  function expireInTime(waiter: Waiter): void {
    const leftMs = waiter.committedAt + waiter.leaseMs + DRIFT_MS - performance.now()
    if (leftMs > 0) {
      waiter.timer = setTimeout(expireInTime, leftMs, waiter)
      return
    }
    waiters.delete(waiter)
    // The next revocation need not wait for these nodes: each registers again before it uses its cache.
    const cleanup = store.transaction((db) => deleteNodesBehind(db, waiter.position))
    void withTimeout(CLEANUP_TIMEOUT_MS, cleanup).then(waiter.resolve)
  }

  return {
    wait(position) {
      const { promise, resolve } = Promise.withResolvers<void>()
      const waiter: Waiter = { position, committedAt: performance.now(), leaseMs: LEASE_MS, resolve }
      waiters.add(waiter)
      expireInTime(waiter)
      if (!isPolling) void poll()
      return promise
    },
  }
}

/** Whether nodes at one position know a change: it is theirs, or before it in the same log. */
export const hasReached = (node: AcknowledgedPosition, position: Position): boolean =>
  isSamePosition(node, position) || (node.isInLog && node.sequence > position.sequence)

const pauseAfter = (waitedMs: number): number =>
  Math.min(Math.max(PAUSE_SHARE * waitedMs, PAUSE_MIN_MS), PAUSE_MAX_MS)

/** Undefined if the promise rejects or takes too long. */
export async function withTimeout<T>(ms: number, promise: Promise<T>): Promise<T | undefined> {
  const { promise: timeout, resolve } = Promise.withResolvers<undefined>()
  const timer = setTimeout(resolve, ms, undefined)
  try {
    return await Promise.race([promise.catch(() => undefined), timeout])
  } finally {
    clearTimeout(timer)
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
