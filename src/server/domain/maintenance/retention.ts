// What the server deletes automatically, and when.

import { PORT_RENEWAL_MS, portRetentionMs } from '../../../lib/net/tcp-ports.ts'
import { DAY_MS, HOUR_MS, MINUTE_MS } from '../../../lib/time.ts'
import type { ServerLimits } from '../../config/server.ts'
import { countChangesBefore, deleteChangesBefore } from '../../store/change-log/entries.ts'
import {
  countExpired,
  deleteExpired,
  type Expired,
  type ExpiringTable,
} from '../../store/maintenance/retention.ts'
import type { MaintenanceState } from '../../store/maintenance/state.ts'
import { countAbandoned, deleteAbandoned } from '../../store/tunnels/abandoned.ts'
import { renewNamesInUse } from '../../store/tunnels/names.ts'
import { renewPorts } from '../../store/tunnels/tcp-ports.ts'
import { deletePreviousSecrets } from '../../store/webhooks/endpoints.ts'
import { CHANGE_RETENTION_MS } from '../../verification/propagation.ts'
import { LINK_MS } from '../accounts/link-limits.ts'
import { USED_CODES_MS } from '../accounts/sign-ins.ts'
import { deleteAuditBefore } from '../audit/export-all.ts'
import { recordChanges } from '../cluster/tunnel-changes.ts'
import type { Services } from '../context.ts'
import { type DeletionBatch, deleteInBatches, type Run, runInBatches } from '../deletion-batches.ts'
import { firstIdSince } from '../ids.ts'
import { IDEMPOTENCY_MS } from '../keys/lifecycle.ts'
import { NAME_RENEWAL_MS, nameExpiry } from '../tunnels/admission.ts'
import { countOldUsage, deleteOldUsage, USAGE_TABLES } from '../usage/retention.ts'
import { RESTORABLE_MS } from '../workspaces/archive.ts'

/** Until then, a device that still polls is told that its code has expired, and not that it is unknown. */
const DEVICE_RETENTION_MS = HOUR_MS

/** How long members see the outcome of their requests. */
const REQUEST_RETENTION_MS = 30 * DAY_MS

/** Longer than a month, and than the earliest notice before an event, so that none is created twice. */
const NOTICE_RETENTION_MS = 40 * DAY_MS

/** Longer than deliveries are retried: these were sent, or their endpoint is disabled or deleted. */
const DELIVERY_RETENTION_MS = 30 * DAY_MS

/** An edge that was away for longer gets all locations again. */
const LOCATION_RETENTION_MS = HOUR_MS

/** Tunnels of an edge that is gone do not count, but are kept for a while in case it comes back. */
const ABANDONED_RETENTION_MS = 10 * MINUTE_MS

/** The earlier of two clocks, because one that is ahead must not delete rows that are still needed. */
const earlierNow = ({ clock }: Services, { now }: Pick<MaintenanceState, 'now'>) => Math.min(clock(), now)

/**
 * The time (or id) per table before which rows are deleted. Links stay, even if they were used, while the
 * limits of invitations count them.
 */
function expiryLimits(now: number, { auditRetentionDays, tcpPorts }: ServerLimits) {
  const limits: [ExpiringTable, before: number | string][] = [
    ['sessions', now],
    ['verifications', now],
    ['links', now - LINK_MS],
    ['used_codes', now - USED_CODES_MS],
    ['idempotent_responses', now - IDEMPOTENCY_MS],
    ['device_authorizations', now - DEVICE_RETENTION_MS],
    ['key_requests', now - REQUEST_RETENTION_MS],
    ['notices', now - NOTICE_RETENTION_MS],
    ['notice_mails', now - NOTICE_RETENTION_MS],
    ['operator_alerts', now - NOTICE_RETENTION_MS],
    ['key_rejections', now - DAY_MS],
    ['webhook_deliveries', now - DELIVERY_RETENTION_MS],
    ['tunnel_names', now],
    ['location_log', now - LOCATION_RETENTION_MS],
    ['tcp_ports', now - portRetentionMs(tcpPorts)],
  ]
  if (auditRetentionDays !== undefined)
    limits.push(['audit_log', firstIdSince('aud', now - auditRetentionDays * DAY_MS)])
  return limits
}

/** The tables that a run deletes from. */
export const retentionTables = (limits: ServerLimits): string[] => [
  ...expiryLimits(0, limits).map(([table]) => table),
  'open_tunnels',
  'change_log',
  ...USAGE_TABLES,
]

/** Deletes everything that is past its retention. Returns false if the run was stopped before the end. */
export async function deletePastRetention(run: Run): Promise<boolean> {
  const now = earlierNow(run.services, run.state)
  if (!(await renewNames(run, now))) return false
  if (!(await renewPortsInUse(run, now))) return false
  if (!(await runInBatches(run, (db, size) => deletePreviousSecrets(db, now, size)))) return false
  for (const [table, before] of expiryLimits(now, run.services.limits)) {
    const deleteBatch: DeletionBatch =
      table === 'audit_log'
        ? (db, size) => deleteAuditBefore(db, run.services, String(before), size)
        : (db, size) => deleteExpired(db, table, before, size)
    if (!(await deleteInBatches(run, table, deleteBatch))) return false
  }
  const deleteChanges: DeletionBatch = (db, size) => deleteChangesBefore(db, now - CHANGE_RETENTION_MS, size)
  return (
    (await deleteAbandonedTunnels(run)) &&
    (await deleteInBatches(run, 'change_log', deleteChanges)) &&
    deleteOldUsage(run, now)
  )
}

/** A batch has the tunnels of some edges, so a batch that is not full may not be the last. */
async function deleteAbandonedTunnels(run: Run): Promise<boolean> {
  let deleted: number
  do {
    deleted = 0
    const isComplete = await deleteInBatches(run, 'open_tunnels', async (db, size) => {
      const abandoned = await deleteAbandoned(db, ABANDONED_RETENTION_MS, size)
      await recordChanges(db, run.services, { opened: [], closed: abandoned.closed, moved: [] })
      deleted = abandoned.deleted
      return deleted
    })
    if (!isComplete) return false
  } while (deleted > 0)
  return true
}

/** Renews names of open tunnels, which would expire otherwise. */
const renewNames = (run: Run, now: number) =>
  runInBatches(run, (db, size) =>
    renewNamesInUse(db, {
      before: nameExpiry(now) - NAME_RENEWAL_MS,
      expiresAt: nameExpiry(now),
      size,
    }),
  )

/** Runs before ports are deleted, and before abandoned tunnels are, because these count as a use. */
function renewPortsInUse(run: Run, now: number): Promise<boolean> {
  let after = 0
  const limits = { usedBefore: now - PORT_RENEWAL_MS, archivedSince: now - RESTORABLE_MS }
  return runInBatches(run, async (db, size) => {
    const { seen, last } = await renewPorts(db, { after, size, ...limits })
    after = last
    return seen
  })
}

/** Counts the rows that a run would delete now, by table. */
export async function previewRetention(
  services: Services,
  state: MaintenanceState,
): Promise<Record<string, Expired>> {
  const { db } = services.store
  const now = earlierNow(services, state)
  const expired: Record<string, Expired> = {}
  for (const [table, before] of expiryLimits(now, services.limits))
    expired[table] = await countExpired(db, table, before)
  expired.open_tunnels = await countAbandoned(db, ABANDONED_RETENTION_MS)
  expired.change_log = await countChangesBefore(db, now - CHANGE_RETENTION_MS)
  return { ...expired, ...(await countOldUsage(db, now, state.usageFloor)) }
}
