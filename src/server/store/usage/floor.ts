// The usage floor: the day before which the maintenance job deletes counters. It is stored in the job's row.
import { nowIn } from '../engine/clock.ts'
import type { Db, Store } from '../engine/store.ts'

/** Raises the floor and starts a new pass over the workspaces. The floor is never lowered. */
export async function raiseUsageFloor(store: Store, floor: number): Promise<void> {
  await store.transaction((db) =>
    db
      .updateTable('maintenance')
      .set({ usage_floor: floor, usage_floor_at: nowIn(db), usage_cursor: '' })
      .where('id', '=', 1)
      .where('usage_floor', '<', floor)
      .execute(),
  )
}

/** A transaction that inserts counters must read this first, or a deleted counter is counted twice. */
export async function readUsageFloor(db: Db): Promise<number> {
  const { usage_floor } = await db
    .selectFrom('maintenance')
    .select('usage_floor')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return usage_floor
}
