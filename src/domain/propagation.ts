// Changes to what nodes remember: keys, edges, workspaces. Each is told in the very transaction that makes it, and is over
// when no node goes by what was before.
import { appendChange, deleteChangesBefore, type Position, readHead } from '../store/change-log.ts'
import { deleteNodesBehind, findLeaseBehind } from '../store/nodes.ts'
import type { Tx } from '../store/store.ts'
import type { Services } from './context.ts'

/** Whoever has not listened for longer must forget all it remembers. */
const KEPT_MS = 24 * 60 * 60 * 1000
/** How long a node goes by its memory after it began to ask for changes. */
export const LEASE_MS = 2_000
/** The clocks of two machines do not run equally fast. */
const DRIFT_MS = 50
const LOOK_AFTER_MS = 2
const LOOK_EVERY_MS = 40
const CLEAN_UP_MS = 500
const MARK_BYTES = 8

export interface KeyChange {
  kind: 'key' | 'edge' | 'workspace'
  subjectId: string
  /** Of the secret, where it has one. */
  hash?: string
}

/** To be called last in the changing transaction. Returns the place to wait for once it is committed. */
export async function publishChange(db: Tx, services: Services, made: KeyChange): Promise<Position> {
  const { kind, subjectId, hash = '' } = made
  const now = services.clock()
  await deleteChangesBefore(db, now - KEPT_MS)
  const mark = Buffer.from(services.random(MARK_BYTES)).toString('hex')
  return appendChange(db, { kind, subject_id: subjectId, hash, at: now, mark })
}

/**
 * Resolves when no node goes by what was before the change: each has acknowledged it, or can trust its memory no longer,
 * because a lease that was begun before the commit is over a lease's length after it. No clock but this process's own is
 * asked for that. Once there is a place, it does not fail: if the database cannot be asked who is behind, the leases still
 * end.
 *
 * Without a place it waits for whatever was changed before: whoever is told that there is nothing left to change may be
 * asking again after an answer that was lost, and takes this one for it.
 */
export async function awaitPropagation(services: Services, made: Position | undefined): Promise<void> {
  const { store } = services
  const place = made ?? (await readHead(store.db))
  const committed = performance.now()
  if (made) {
    services.afterChange()
    store.notify().catch(() => {})
  }
  let lease = LEASE_MS
  for (let pause = LOOK_AFTER_MS; ; pause = Math.min(2 * pause, LOOK_EVERY_MS)) {
    const left = committed + lease + DRIFT_MS - performance.now()
    if (left <= 0) break
    // A node of another version may have a longer lease; a database that does not answer is not waited for.
    const behind = await answerWithin(left, findLeaseBehind(store.db, place), lease)
    if (behind === undefined) return
    lease = Math.max(lease, behind)
    await sleep(Math.min(pause, left))
  }
  // Nobody else has to wait for them. One that comes back notices before it trusts its memory again.
  await answerWithin(
    CLEAN_UP_MS,
    store.transaction((db) => deleteNodesBehind(db, place)),
    undefined,
  )
}

/** Another value where there is no answer, or none in time. */
async function answerWithin<T>(ms: number, asked: Promise<T>, otherwise: T): Promise<T> {
  const { promise: late, resolve } = Promise.withResolvers<T>()
  const timer = setTimeout(resolve, ms, otherwise)
  try {
    return await Promise.race([asked.catch(() => otherwise), late])
  } finally {
    clearTimeout(timer)
  }
}

const sleep = (ms: number) => new Promise<void>((resolve) => setTimeout(resolve, ms))
