// The writer's half of the protocol: publishes a change in the transaction that makes it, and waits until no
// node uses a cache that predates it.
import { appendChange, type Change, type Position, readHead } from '../store/change-log.ts'
import { deleteNodesBehind, findLeaseBehind } from '../store/nodes.ts'
import type { Store, Tx } from '../store/store.ts'
import { DAY_MS } from '../time.ts'
import { LEASE_MS } from './lease.ts'

/** How long entries are kept. A node or edge that was disconnected for longer drops its whole cache. */
export const CHANGES_KEPT_MS = DAY_MS
/** Allowance for monotonic clocks that run at different rates. */
const DRIFT_MS = 50
const POLL_MIN_MS = 2
const POLL_MAX_MS = 40
const CLEANUP_TIMEOUT_MS = 500
const CHECKSUM_BYTES = 8

export interface PropagationServices {
  store: Store
  /** Milliseconds since 1970, UTC. */
  clock: () => number
  random: (bytes: number) => Uint8Array
  /** Wakes the change follower of this process, if it has one. */
  afterChange: () => void
}

export interface KeyChange {
  kind: Change['kind']
  subjectId: string
  /** Hash of the revoked secret, if it has one. */
  hash?: string
}

/** Call it last in the changing transaction. Returns the position to await once that is committed. */
export async function publishChange(
  db: Tx,
  { clock, random }: PropagationServices,
  { kind, subjectId, hash = '' }: KeyChange,
): Promise<Position> {
  const checksum = Buffer.from(random(CHECKSUM_BYTES)).toString('hex')
  return appendChange(db, { kind, subjectId, hash, at: clock(), checksum })
}

/**
 * Resolves when no node uses a cache that predates the change: each has acknowledged it, or its lease
 * has expired. A lease renewed before the commit expires within its length after the commit, so this
 * process's clock is enough. With a position it never rejects: if the database does not respond, it waits
 * until the leases expire.
 *
 * Without a position there was nothing left to change. It then awaits the latest change: the caller may be
 * retrying a revocation whose response was lost.
 */
export async function awaitPropagation(
  services: PropagationServices,
  published: Position | undefined,
): Promise<void> {
  const { store } = services
  const position = published ?? (await readHead(store.db))
  const committedAt = performance.now()
  if (published) {
    services.afterChange()
    store.notify().catch(() => {})
  }
  let leaseMs = LEASE_MS
  for (let pauseMs = POLL_MIN_MS; ; pauseMs = Math.min(2 * pauseMs, POLL_MAX_MS)) {
    const leftMs = committedAt + leaseMs + DRIFT_MS - performance.now()
    if (leftMs <= 0) break
    // Nodes of another version may have a longer lease.
    const behindMs = await withTimeout(leftMs, findLeaseBehind(store.db, position), leaseMs)
    if (behindMs === undefined) return
    leaseMs = Math.max(leaseMs, behindMs)
    await sleep(Math.min(pauseMs, leftMs))
  }
  // The next revocation need not wait for these nodes: each registers again before it uses its cache.
  await withTimeout(
    CLEANUP_TIMEOUT_MS,
    store.transaction((db) => deleteNodesBehind(db, position)),
    undefined,
  )
}

/** The fallback if the promise rejects or takes too long. */
async function withTimeout<T>(ms: number, promise: Promise<T>, fallback: T): Promise<T> {
  const { promise: timeout, resolve } = Promise.withResolvers<T>()
  const timer = setTimeout(resolve, ms, fallback)
  try {
    return await Promise.race([promise.catch(() => fallback), timeout])
  } finally {
    clearTimeout(timer)
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
