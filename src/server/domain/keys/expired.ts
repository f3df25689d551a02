// Records an event for each key that has expired. Nodes look for such keys, because nothing is written when a
// key expires.

import { DAY_MS, MINUTE_MS } from '../../../lib/time.ts'
import { readDatabaseClock } from '../../store/engine/clock.ts'
import { insertNotices, listExpiredKeys } from '../../store/notices/key-notices.ts'
import { pauseAfter, type Run } from '../deletion-batches.ts'
import { recordEvent } from '../events/record.ts'
import { keyInEvent } from './lifecycle.ts'

/** Nobody sees this notice: it records that the event exists. */
const KIND = 'key-expired'
/** Longer than the interval at which nodes look for expired keys. */
export const RECENTLY_MS = 10 * MINUTE_MS
/** Keys that expired earlier, while no node ran, get no event. Shorter than the retention of notices. */
export const SINCE_MAX_MS = DAY_MS
const SLICE_ROWS = 100

/**
 * Covers keys that expired within the last `sinceMs`. Returns false if the run was stopped before the end.
 */
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
