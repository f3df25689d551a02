// Notices to the owners and admins of a workspace 7 days and 1 day before an API key expires, once each. The
// maintenance job creates them.

import { DAY_MS } from '../../../lib/time.ts'
import {
  type ExpiringKey,
  type ExpiryCursor,
  insertMails,
  insertNotices,
  listExpiringKeys,
  listNoticed,
} from '../../store/notices/key-notices.ts'
import type { Services } from '../context.ts'
import { pauseAfter, type Run } from '../deletion-batches.ts'
import { recordEvents } from '../events/record.ts'
import { toIso } from '../timestamps.ts'
import { listRecipients } from './recipients.ts'

const KIND = 'key-expiry'
/** Shortest first. */
const THRESHOLDS = [
  { threshold: '1d', ms: DAY_MS },
  { threshold: '7d', ms: 7 * DAY_MS },
] as const
const WITHIN_MS = 7 * DAY_MS
const SLICE_ROWS = 200

/** Undefined if no notice is due. A key that lives for less than twice the period gets none. */
function dueThreshold({ createdAt, expiresAt }: Pick<ExpiringKey, 'createdAt' | 'expiresAt'>, now: number) {
  const next = THRESHOLDS.find(({ ms }) => expiresAt - now <= ms)
  return next && expiresAt - createdAt >= 2 * next.ms ? next.threshold : undefined
}

/** Returns false if the run was stopped before the end. */
export async function createNotices(run: Run, { withMail }: { withMail: boolean }): Promise<boolean> {
  const { services } = run
  const { now } = run.state
  let after: ExpiryCursor = { expiresAt: now, id: '' }
  for (;;) {
    if (!(await run.proceed())) return false
    const startedAt = performance.now()
    const keys = await listExpiringKeys(services.store.db, {
      after,
      until: now + WITHIN_MS,
      limit: SLICE_ROWS,
    })
    for (const { threshold } of THRESHOLDS) {
      const due = keys.filter((key) => dueThreshold(key, now) === threshold)
      await noticeKeys(services, { threshold, keys: due, withMail })
    }
    if (keys.length < SLICE_ROWS) return true
    after = keys.at(-1) as ExpiringKey
    await pauseAfter(run, performance.now() - startedAt)
  }
}

interface DueKeys {
  threshold: string
  keys: ExpiringKey[]
  withMail: boolean
}

async function noticeKeys(services: Services, { threshold, keys, withMail }: DueKeys): Promise<void> {
  if (keys.length === 0) return
  const ids = keys.map(({ id }) => ({ kind: KIND, subject_id: id, dedup_key: threshold }))
  const noticed = new Set((await listNoticed(services.store.db, ids)).map(({ subject_id }) => subject_id))
  const byWorkspace = Map.groupBy(
    keys.filter(({ id }) => !noticed.has(id)),
    ({ workspaceId }) => workspaceId,
  )
  for (const [workspaceId, expiring] of byWorkspace)
    await services.store.transaction(async (db) => {
      const recipients = withMail ? await listRecipients(db, services, { workspaceId, kind: KIND }) : []
      const common = { workspace_id: workspaceId, created_at: services.clock() }
      const digest_id = recipients.length > 0 ? services.ids('dig') : null
      const notice = { ...common, kind: KIND, dedup_key: threshold, digest_id }
      const rows = expiring.map(({ id }) => ({ ...notice, subject_id: id }))
      const inserted = await insertNotices(db, rows)
      if (inserted.size === 0) return
      if (digest_id !== null) await insertMails(db, { ...common, digest_id }, recipients)
      await recordEvents(
        db,
        services,
        // Another node may have created the others meanwhile.
        expiring
          .filter(({ id }) => inserted.has(id))
          .map((key) => ({ workspaceId, type: 'key.expiring', data: { key: keyInEvent(key) } })),
      )
    })
}

const keyInEvent = ({ id, label, createdAt, expiresAt }: ExpiringKey) => ({
  id,
  label,
  createdAt: toIso(createdAt),
  expiresAt: toIso(expiresAt),
})
