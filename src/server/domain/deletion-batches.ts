// Deletion and other maintenance in small batches with pauses, so that requests and reports hardly notice it.
import { isCanceled } from '../store/engine/errors.ts'
import type { Tx } from '../store/engine/store.ts'
import { inMaintenanceTransaction, type MaintenanceState } from '../store/maintenance/state.ts'
import type { Services } from './context.ts'

const BATCH_MIN = 10
const BATCH_START = 200
export const BATCH_MAX = 1_000
/** Target range of a batch's duration, in which SQLite blocks the event loop. */
const FAST_MS = 10
const SLOW_MS = 25
const PAUSE_MIN_MS = 5
/** Pause after a batch, as a multiple of its duration, so the job uses a fifth of one connection. */
const PAUSE_FACTOR = 4

/** A run of the maintenance job. */
export interface Run {
  services: Services
  state: MaintenanceState
  /** Progress of the deletion of counters, stored with the lease. */
  usageCursor: string | null
  /** Renews the lease if that is due. Returns false if the run has to stop. */
  proceed(): Promise<boolean>
  sleep(ms: number): Promise<void>
  onDeleted(table: string, rows: number): void
  onWait(ms: number): void
}

/** Changes at most `size` rows, and returns how many. */
export type DeletionBatch = (db: Tx, size: number) => Promise<number>

/** Runs batches until one is not full. Returns false if the run was stopped before. */
export async function runInBatches(
  run: Run,
  batch: DeletionBatch,
  onChanged?: (rows: number) => void,
): Promise<boolean> {
  for (let size = BATCH_START; await run.proceed(); ) {
    const startedAt = performance.now()
    const changed = await tryBatch(run, size, batch)
    const ms = performance.now() - startedAt
    if (changed !== undefined) onChanged?.(changed)
    await pauseAfter(run, ms)
    if (changed !== undefined && changed < size) return true
    size = nextBatchSize(size, ms)
  }
  return false
}

/** Like `runInBatches`, and reports the deleted rows. */
export const deleteInBatches = (run: Run, table: string, deleteBatch: DeletionBatch): Promise<boolean> =>
  runInBatches(run, deleteBatch, (deleted) => run.onDeleted(table, deleted))

export const pauseAfter = (run: Pick<Run, 'sleep'>, ms: number) =>
  run.sleep(Math.max(PAUSE_MIN_MS, PAUSE_FACTOR * ms))

/** Undefined if PostgreSQL canceled the batch because it took too long; a smaller one may succeed. */
async function tryBatch({ services }: Run, size: number, batch: DeletionBatch) {
  try {
    return await inMaintenanceTransaction(services.store, (db) => batch(db, size))
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
