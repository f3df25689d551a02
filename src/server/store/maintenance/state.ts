// The row of the maintenance job: which node runs it, when the next run is due, and how far usage counters
// have been deleted. Its times are from the database's clock, so that the lease does not depend on the clocks
// of nodes. Two owners at the same time would do no harm: every deletion can be repeated.
import { sql } from 'kysely'
import { nowIn } from '../engine/clock.ts'
import type { Store, Tx } from '../engine/store.ts'

/** PostgreSQL cancels statements of `inMaintenanceTransaction` that run longer. */
const STATEMENT_MAX_MS = 200
/** Longer than a lease and than the pause between two runs. */
const DUE_MAX_MS = 60 * 60_000

const stateColumns = [
  'usage_floor as usageFloor',
  'usage_floor_at as usageFloorAt',
  'usage_cursor as usageCursor',
] as const

export interface MaintenanceState {
  /** The database's clock. */
  now: number
  /** Reports cannot add counters of earlier days, whose counters are deleted. */
  usageFloor: number
  /** When the floor was raised. */
  usageFloorAt: number
  /** The last workspace whose usage before the floor is deleted; null if it is deleted for all. */
  usageCursor: string | null
}

/**
 * A short transaction that does not wait for the disk, because a later run repeats a lost deletion. Table
 * scans are off: while most rows are to be deleted, the planner would scan the table for each batch.
 */
export const inMaintenanceTransaction = <T>(store: Store, work: (db: Tx) => Promise<T>): Promise<T> =>
  store.transaction(async (db) => {
    if (store.engine === 'postgres')
      await sql`select set_config('statement_timeout', ${String(STATEMENT_MAX_MS)}, true),
        set_config('synchronous_commit', 'off', true), set_config('enable_seqscan', 'off', true)`.execute(db)
    return work(db)
  })

/**
 * Acquires the lease if a run is due or the lease has expired; with `force`, also if no run is due. Returns
 * undefined if the lease was not acquired.
 */
export async function acquireLease(
  store: Store,
  { owner, leaseMs, force = false }: { owner: string; leaseMs: number; force?: boolean },
): Promise<MaintenanceState | undefined> {
  const now = nowIn(store.db)
  // A time far in the future was written while the database's clock was wrong.
  const isPast = sql<boolean>`(due_at <= ${now} or due_at > ${now} + ${sql.lit(DUE_MAX_MS)})`
  const isDue = force ? sql<boolean>`(${isPast} or owner = '')` : isPast
  // Read first: an update would lock the SQLite file, and most of the time nothing is due.
  const due = await store.db
    .selectFrom('maintenance')
    .select('id')
    .where('id', '=', 1)
    .where(isDue)
    .executeTakeFirst()
  if (!due) return undefined
  return inMaintenanceTransaction(store, (db) =>
    db
      .updateTable('maintenance')
      .set({ owner, due_at: sql`${now} + ${sql.lit(leaseMs)}` })
      .where('id', '=', 1)
      .where(isDue)
      .returning([...stateColumns, now.as('now')])
      .executeTakeFirst(),
  )
}

interface LeaseUpdate {
  owner: string
  /** Time until the lease expires, or until the next run is due. */
  dueInMs: number
  /** Ends the lease. */
  release?: boolean
  /** Progress of the deletion of usage; not changed if undefined. */
  usageCursor?: string | null | undefined
}

/** Renews or releases the lease. Returns false if another owner has it. */
export async function updateLease(
  store: Store,
  { owner, dueInMs, release = false, usageCursor }: LeaseUpdate,
): Promise<boolean> {
  const { numUpdatedRows } = await inMaintenanceTransaction(store, (db) =>
    db
      .updateTable('maintenance')
      .set({
        due_at: sql`${nowIn(db)} + ${sql.lit(dueInMs)}`,
        ...(release && { owner: '' }),
        ...(usageCursor !== undefined && { usage_cursor: usageCursor }),
      })
      .where('id', '=', 1)
      .where('owner', '=', owner)
      .executeTakeFirst(),
  )
  return numUpdatedRows === 1n
}

export const readMaintenance = (store: Store) =>
  store.db
    .selectFrom('maintenance')
    .select([...stateColumns, 'owner', nowIn(store.db).as('now')])
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()

/** The time of the last scheduled backup; null if there was none. */
export async function readLastBackup({ db }: Store): Promise<number | null> {
  const row = await db.selectFrom('maintenance').select('backed_up_at').where('id', '=', 1).executeTakeFirst()
  return row?.backed_up_at ?? null
}
