// What the server deletes by itself, and when. Deletion is in small batches with pauses, so that requests and
// reports hardly notice it.
import { CHANGES_KEPT_MS } from '../directory/propagation.ts'
import { countChangesBefore, deleteChangesBefore } from '../store/change-log.ts'
import { isCanceled } from '../store/db-errors.ts'
import { inMaintenanceTransaction, type MaintenanceState, raiseUsageFloor } from '../store/maintenance.ts'
import {
  countExpired,
  countUsage,
  deleteExpired,
  deleteUsage,
  type Expired,
  type ExpiringTable,
  listWorkspaceIds,
  usageTables,
} from '../store/retention.ts'
import type { Tx } from '../store/store.ts'
import { DAY_MS, MINUTE_MS, startOfDay } from '../time.ts'
import type { Services } from './context.ts'
import { firstIdSince } from './ids.ts'
import { IDEMPOTENCY_MS } from './keys.ts'
import { LINK_WINDOW_MS } from './link-limits.ts'
import { DAYS_BACK_MAX } from './reports.ts'

/** Longer than any node accepts a code, however its clock differs from that of the node that saw it first. */
const CODES_KEPT_MS = 60 * MINUTE_MS
/** The margin covers nodes of an earlier version, which do not know the floor (see `deleteOldUsage`). */
const USAGE_DAYS_KEPT = DAYS_BACK_MAX + 5
/**
 * From raising the floor until counters are deleted: longer than a transaction that read the old floor can
 * last. On SQLite there is only one writer, so such a transaction has ended.
 */
const FLOOR_GRACE_MS = { sqlite: 0, postgres: 60_000 }
const WORKSPACES_PER_BATCH = 100

const BATCH_MIN = 10
const BATCH_START = 200
const BATCH_MAX = 1_000
/** A batch should take between these times; SQLite blocks the event loop meanwhile. */
const FAST_MS = 10
const SLOW_MS = 25
const PAUSE_MIN_MS = 5
/** The pause after a batch as a multiple of its time: the job uses a fifth of one connection. */
const PAUSE_FACTOR = 4

export interface RetentionSettings {
  /** Undefined: the audit log is kept. */
  auditDays: number | undefined
}

/** A run of the job, as long as its owner has the lease. */
export interface Run {
  services: Services
  settings: RetentionSettings
  state: MaintenanceState
  /** Progress of the deletion of usage, stored with the lease. */
  usageCursor: string | null
  /** False if the run has to stop. Renews the lease when that is due. */
  proceed(): Promise<boolean>
  sleep(ms: number): Promise<void>
  onDeleted(table: string, rows: number): void
  onWait(ms: number): void
}

/** The earlier of two clocks: one that is ahead must not delete what is still needed. */
const nowOf = ({ clock }: Services, { now }: Pick<MaintenanceState, 'now'>) => Math.min(clock(), now)

/**
 * Per table: rows before this time (or id) are deleted. Links stay for the time in which the limits on
 * invitations count them, also when they were used.
 */
const expiryLimits = (
  now: number,
  { auditDays }: RetentionSettings,
): [ExpiringTable, before: number | string][] => [
  ['sessions', now],
  ['verifications', now],
  ['links', now - LINK_WINDOW_MS],
  ['used_codes', now - CODES_KEPT_MS],
  ['idempotent_answers', now - IDEMPOTENCY_MS],
  ...(auditDays === undefined
    ? []
    : [['audit_log', firstIdSince('aud', now - auditDays * DAY_MS)] satisfies [ExpiringTable, string]]),
]

const usageLimit = (now: number) => startOfDay(now) - USAGE_DAYS_KEPT * DAY_MS

/** Deletes everything that is past its retention. Returns false if the run was stopped before the end. */
export async function deletePastRetention(run: Run): Promise<boolean> {
  const now = nowOf(run.services, run.state)
  for (const [table, before] of expiryLimits(now, run.settings))
    if (!(await deleteInBatches(run, table, (db, size) => deleteExpired(db, table, before, size))))
      return false
  const changesBefore = now - CHANGES_KEPT_MS
  if (!(await deleteInBatches(run, 'key_feed', (db, size) => deleteChangesBefore(db, changesBefore, size))))
    return false
  return deleteOldUsage(run, usageLimit(now))
}

/**
 * Deletes counters of days that are closed for reports. A report that comes later would insert its counter
 * again and add it to the day's total, which has it already. So this order does not depend on the clock of
 * the node that gets the report: first the floor is raised, then all transactions that have read the old one
 * end, then the rows before the floor are deleted. Who inserts a counter reads the floor first.
 */
async function deleteOldUsage(run: Run, limit: number): Promise<boolean> {
  const { services, state } = run
  const { store } = services
  let waitMs = state.usageFloorAt + FLOOR_GRACE_MS[store.engine] - state.now
  if (limit > state.usageFloor) {
    await raiseUsageFloor(store, limit)
    run.usageCursor = ''
    waitMs = FLOOR_GRACE_MS[store.engine]
  }
  if (run.usageCursor === null) return true
  if (!(await wait(run, waitMs))) return false
  const before = Math.max(limit, state.usageFloor)
  for (;;) {
    const workspaceIds = await listWorkspaceIds(store.db, run.usageCursor, WORKSPACES_PER_BATCH)
    for (const table of workspaceIds.length > 0 ? usageTables : []) {
      const batch = { table, workspaceIds, before }
      if (!(await deleteInBatches(run, table, (db, size) => deleteUsage(db, store.engine, batch, size))))
        return false
    }
    run.usageCursor = workspaceIds.at(-1) ?? null
    if (run.usageCursor === null) return true
  }
}

async function wait(run: Run, ms: number): Promise<boolean> {
  if (ms > 0) run.onWait(ms)
  for (let left = ms; left > 0; left -= 1_000) {
    if (!(await run.proceed())) return false
    await run.sleep(Math.min(left, 1_000))
  }
  return true
}

type DeleteBatch = (db: Tx, size: number) => Promise<number>

/** Until a batch is not full. Returns false if the run was stopped before. */
async function deleteInBatches(run: Run, table: string, deleteBatch: DeleteBatch): Promise<boolean> {
  for (let size = BATCH_START; await run.proceed(); ) {
    const startedAt = performance.now()
    const deleted = await tryBatch(run, size, deleteBatch)
    const ms = performance.now() - startedAt
    if (deleted !== undefined) run.onDeleted(table, deleted)
    await run.sleep(Math.max(PAUSE_MIN_MS, PAUSE_FACTOR * ms))
    if (deleted !== undefined && deleted < size) return true
    size = nextBatchSize(size, ms)
  }
  return false
}

/** Undefined if PostgreSQL canceled the batch because it took too long; a smaller one may succeed. */
async function tryBatch({ services }: Run, size: number, deleteBatch: DeleteBatch) {
  try {
    return await inMaintenanceTransaction(services.store, (db) => deleteBatch(db, size))
  } catch (error) {
    if (!isCanceled(error) || size === BATCH_MIN) throw error
    return undefined
  }
}

/** Halved after a slow batch, doubled after a fast one. */
export function nextBatchSize(size: number, ms: number): number {
  if (ms > SLOW_MS) return Math.max(BATCH_MIN, Math.floor(size / 2))
  return ms < FAST_MS ? Math.min(BATCH_MAX, size * 2) : size
}

export interface Preview extends Expired {
  table: string
}

/** What a run would delete now, per table. */
export async function previewRetention(
  services: Services,
  settings: RetentionSettings,
  state: MaintenanceState,
): Promise<Preview[]> {
  const { db } = services.store
  const now = nowOf(services, state)
  const previews: Preview[] = []
  for (const [table, before] of expiryLimits(now, settings))
    previews.push({ table, ...(await countExpired(db, table, before)) })
  previews.push({ table: 'key_feed', ...(await countChangesBefore(db, now - CHANGES_KEPT_MS)) })
  const before = Math.max(usageLimit(now), state.usageFloor)
  for (const table of usageTables) {
    const found: Expired = { rows: 0, oldest: null }
    let workspaceIds = await listWorkspaceIds(db, '', WORKSPACES_PER_BATCH)
    while (workspaceIds.length > 0) {
      const { rows, oldest } = await countUsage(db, { table, workspaceIds, before })
      found.rows += rows
      if (oldest !== null) found.oldest = Math.min(oldest, found.oldest ?? oldest)
      workspaceIds = await listWorkspaceIds(db, workspaceIds.at(-1) as string, WORKSPACES_PER_BATCH)
    }
    previews.push({ table, ...found })
  }
  return previews
}
