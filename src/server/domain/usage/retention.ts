// Deletion of usage that is closed for reports. The totals of days stay.

import { DAY_MS, startOfDay } from '../../../lib/time.ts'
import { groupByShard, withCurrentShards } from '../../store/engine/postgres/usage-shards.ts'
import type { Db } from '../../store/engine/store.ts'
import {
  countExpired,
  countUsage,
  deleteExpired,
  deleteUsage,
  type Expired,
  listOldHours,
  listWorkspaceIds,
  type UsageBatch,
} from '../../store/maintenance/retention.ts'
import { raiseUsageFloor } from '../../store/usage/floor.ts'
import { BATCH_MAX, deleteInBatches, type Run } from '../deletion-batches.ts'
import { DAYS_BACK_MAX } from './reports.ts'

/** The margin is for nodes whose clock is behind, which accept reports of earlier days. */
const RETENTION_DAYS = DAYS_BACK_MAX + 5
/**
 * Time from raising the floor until counters are deleted: longer than any transaction that read the old
 * floor. `insertMissing` runs 7 statements from that read to the commit, of at most 8 s each, with 6 pauses
 * of at most 1.5 s: 65 s in all. On SQLite there is only one writer, so such a transaction has ended.
 */
const FLOOR_GRACE_MS = { sqlite: 0, postgres: 120_000 }
const WORKSPACES_PER_BATCH = 100

export const USAGE_TABLES = ['usage_counters', 'usage_hours']

/** Usage of days before this one is deleted. */
const oldestDay = (now: number) => startOfDay(now) - RETENTION_DAYS * DAY_MS

/** Returns false if the run was stopped before the end. */
export async function deleteOldUsage(run: Run, now: number): Promise<boolean> {
  const before = oldestDay(now)
  return (await deleteOldHours(run, before)) && (await deleteOldCounters(run, before))
}

/**
 * A report that arrives after its counter was deleted would insert the counter again, and add it a second
 * time to the day's total. This order prevents that, whatever the clocks of nodes say: first the floor is
 * raised, then all transactions that have read the old floor end, then the rows before the floor are deleted.
 * Every transaction that inserts a counter reads the floor.
 */
async function deleteOldCounters(run: Run, oldest: number): Promise<boolean> {
  const { services, state } = run
  const { store } = services
  let waitMs = state.usageFloorAt + FLOOR_GRACE_MS[store.engine] - state.now
  if (oldest > state.usageFloor) {
    await raiseUsageFloor(store, oldest)
    run.usageCursor = ''
    waitMs = FLOOR_GRACE_MS[store.engine]
  }
  if (run.usageCursor === null) return true
  if (!(await wait(run, waitMs))) return false
  const before = Math.max(oldest, state.usageFloor)
  for (;;) {
    const workspaceIds = await listWorkspaceIds(store.db, run.usageCursor, WORKSPACES_PER_BATCH)
    if (!(await deleteByShard(run, { table: 'usage_counters', workspaceIds, before }))) return false
    run.usageCursor = workspaceIds.at(-1) ?? null
    if (run.usageCursor === null) return true
  }
}

function deleteByShard(run: Run, { table, workspaceIds, before }: UsageBatch): Promise<boolean> {
  const { usageShards } = run.services.store
  return withCurrentShards(usageShards, async () => {
    for (const group of await groupByShard(usageShards, workspaceIds)) {
      const batch = { table, workspaceIds: group.workspaceIds, before }
      const isDone = await deleteInBatches(run, table, (db, size) => deleteUsage(db, batch, size))
      if (!isDone) return false
    }
    return true
  })
}

/**
 * Hours need no floor: an hour that is inserted again has at most as many tunnels as before, and the day's
 * peak is a maximum.
 */
async function deleteOldHours(run: Run, before: number): Promise<boolean> {
  const { store } = run.services
  if (!(await store.usageShards.isDistributed()))
    return deleteInBatches(run, 'usage_hours', (db, size) => deleteExpired(db, 'usage_hours', before, size))
  for (;;) {
    const oldest = await listOldHours(store.db, before, BATCH_MAX)
    const last = oldest.at(-1)
    if (!last) return true
    const workspaceIds = [...new Set(oldest.map((row) => row.workspaceId))]
    const batch = { table: 'usage_hours', workspaceIds, before: last.hour + 1 } as const
    if (!(await deleteByShard(run, batch))) return false
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

/** Counts the rows that `deleteOldUsage` would delete now. */
export async function countOldUsage(db: Db, now: number, floor: number) {
  const before = Math.max(oldestDay(now), floor)
  const counters: Expired = { rows: 0, oldest: null }
  let workspaceIds = await listWorkspaceIds(db, '', WORKSPACES_PER_BATCH)
  while (workspaceIds.length > 0) {
    const { rows, oldest } = await countUsage(db, { table: 'usage_counters', workspaceIds, before })
    counters.rows += rows
    if (oldest !== null) counters.oldest = Math.min(oldest, counters.oldest ?? oldest)
    workspaceIds = await listWorkspaceIds(db, workspaceIds.at(-1) as string, WORKSPACES_PER_BATCH)
  }
  return { usage_counters: counters, usage_hours: await countExpired(db, 'usage_hours', oldestDay(now)) }
}
