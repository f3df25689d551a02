// Waits until no edge carries traffic for keys that were revoked, or workspaces that were archived: each edge
// that may carry it has acknowledged the change, or its lease has expired.
import { setTimeout as sleep } from 'node:timers/promises'
import type { Position } from '../store/change-log/entries.ts'
import type { Store } from '../store/engine/store.ts'
import { findHolders } from '../store/tunnels/holders.ts'
import { hasReached, resultWithin } from './propagation-wait.ts'

/** Allowance for monotonic clocks that run at different rates, during a lease of half a minute. */
const DRIFT_MS = 300
const QUERY_TIMEOUT_MS = 2_000
/** Pauses between queries: they grow, because most edges acknowledge at once, and a dead one never does. */
const PAUSE_MS = { min: 4, factor: 1.5, max: 200 }

/**
 * Call it right after the commit. An edge renews its lease only after it has applied all changes that were
 * committed before, so a lease without this change began before the commit, and this process's clock is
 * enough. Never rejects.
 */
export async function waitForEdges(
  store: Store,
  { position, subjectIds, leaseMs }: { position: Position; subjectIds: readonly string[]; leaseMs: number },
): Promise<void> {
  const deadline = performance.now() + leaseMs + DRIFT_MS
  const { db } = store.controlConnection
  let pauseMs = PAUSE_MS.min
  for (const subjectId of subjectIds)
    for (;;) {
      const holders = await resultWithin(QUERY_TIMEOUT_MS, findHolders(db, subjectId))
      if (holders?.every((edge) => !edge.hasPrevious && hasReached(edge, position))) break
      const leftMs = deadline - performance.now()
      if (leftMs <= 0) return
      await sleep(Math.min(pauseMs, leftMs))
      pauseMs = Math.min(pauseMs * PAUSE_MS.factor, PAUSE_MS.max)
    }
}
