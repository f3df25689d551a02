// What is revoked is told to whoever might remember it otherwise, in the very transaction that revokes it.
import { appendToFeed, dropFeedBefore } from '../store/feed.ts'
import type { Db } from '../store/store.ts'
import type { World } from './context.ts'

/** Whoever has not listened for longer must forget all it remembers. */
const KEPT_MS = 24 * 60 * 60 * 1000

/** To be called last in the revoking transaction. */
export async function tellOfRevocation(
  db: Db,
  world: World,
  change: { kind: 'key' | 'edge'; subjectId: string; hash: string },
): Promise<void> {
  const now = world.clock()
  await dropFeedBefore(db, now - KEPT_MS)
  await appendToFeed(db, { kind: change.kind, subject_id: change.subjectId, hash: change.hash, at: now })
}
