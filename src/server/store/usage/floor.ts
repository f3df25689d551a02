// The day before which counters are deleted. It is in the row of the maintenance job, which deletes them.
import { databaseNow } from '../engine/clock.ts'
import type { Db, Store } from '../engine/store.ts'

/** Raises the floor and starts a new pass over the workspaces. It is never lowered. */
export async function raiseUsageFloor(store: Store, floor: number): Promise<void> {
  await store.transaction((db) =>
    db
      .updateTable('maintenance')
      .set({ usage_floor: floor, usage_floor_at: databaseNow[store.engine], usage_cursor: '' })
      .where('id', '=', 1)
      .where('usage_floor', '<', floor)
      .execute(),
  )
}

/**
 * The day before which counters are deleted. A transaction that inserts counters must read it first: a
 * counter that was deleted would be counted a second time.
 */
export async function readUsageFloor(db: Db): Promise<number> {
  const { usage_floor } = await db
    .selectFrom('maintenance')
    .select('usage_floor')
    .where('id', '=', 1)
    .executeTakeFirstOrThrow()
  return usage_floor
}
