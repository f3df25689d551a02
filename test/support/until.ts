import assert from 'node:assert/strict'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import type { Store, Tx } from '../../src/server/store/engine/store.ts'

/** Only a test that fails waits for so long. Pass a shorter time where a guarantee is one. */
const TIMEOUT_MS = 30_000

/** Waits for a condition, and returns how many milliseconds it took. */
export async function until(what: string, holds: () => unknown, ms = TIMEOUT_MS): Promise<number> {
  const began = performance.now()
  while (!(await holds())) {
    assert.ok(performance.now() - began < ms, `not within ${ms} ms: ${what}`)
    await sleep(5)
  }
  return performance.now() - began
}

/** Waits until a statement waits for a lock in PostgreSQL. */
export const untilBlocked = ({ db }: Store) =>
  until('a statement waits for a lock', async () => {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(db)
    return rows.length > 0
  })

/** Commits `change` once `blocked` waits for its locks, after `inspect`, and returns the result of that. */
export async function commitWhenBlocked<T>(
  store: Store,
  change: (tx: Tx) => Promise<unknown>,
  blocked: () => Promise<T>,
  inspect = async () => {},
): Promise<T> {
  const [changed, commit] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const committed = store.transaction(async (tx) => {
    await change(tx)
    changed.resolve()
    await commit.promise
  })
  await Promise.race([changed.promise, committed])
  const result = blocked()
  await untilBlocked(store).then(inspect).finally(commit.resolve)
  await committed
  return result
}
