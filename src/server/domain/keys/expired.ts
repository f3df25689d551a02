// The events of keys that have expired, once each. Nodes look for them, because nothing is written when a key
// expires.

import { DAY_MS, MINUTE_MS } from '../../../lib/time.ts'
import { readDatabaseClock } from '../../store/engine/clock.ts'
import { insertNotices, listExpiredKeys } from '../../store/notices/key-notices.ts'
import type { Run } from '../deletion-batches.ts'
import { pauseAfter } from '../deletion-batches.ts'
import { recordEvent } from '../events/record.ts'
import { keyInEvent } from './lifecycle.ts'

/** The notice is for no user: it records that there was an event. */
const KIND = 'key-expired'
/** Longer than nodes take from one look to the next. */
export const RECENTLY_MS = 10 * MINUTE_MS
/** If no node has run for longer, earlier expiries have no event. Shorter than notices are kept. */
export const SINCE_MAX_MS = DAY_MS
const SLICE_ROWS = 100

/** `sinceMs`: how long ago they have expired at most. Returns false if the run was stopped before the end. */
export async function recordExpiredKeys(
  run: Pick<Run, 'services' | 'proceed' | 'sleep'>,
  sinceMs: number,
): Promise<boolean> {
  const { services } = run
  const now = await readDatabaseClock(services.store)
  for (;;) {
    if (!(await run.proceed())) return false
    const startedAt = performance.now()
    const slice = { kind: KIND, after: now - sinceMs, until: now, limit: SLICE_ROWS }
    const keys = await listExpiredKeys(services.store.db, slice)
    for (const key of keys)
      await services.store.transaction(async (tx) => {
        const workspaceId = key.workspace_id
        const notice = { kind: KIND, subject_id: key.id, dedup_key: '', workspace_id: workspaceId }
        const row = { ...notice, created_at: services.clock(), digest_id: null }
        if ((await insertNotices(tx, [row])).size === 0) return
        await recordEvent(tx, services, { workspaceId, type: 'key.expired', data: { key: keyInEvent(key) } })
      })
    if (keys.length < SLICE_ROWS) return true
    await pauseAfter(run, performance.now() - startedAt)
  }
}
