// The cost of a report in rows: it depends on the report, not on the other edges, epochs and days.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { DAY_MS } from '../../../../src/lib/time.ts'
import type { Store, Tx } from '../../../../src/server/store/engine/store.ts'
import { noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { commitReports } from '../../../../src/server/store/usage/commit.ts'
import { openTestServices } from '../../../support/api/server.ts'
import { type Engine, engines } from '../../../support/databases/create.ts'

const DAY = Date.parse('2026-03-01')
const MINUTE = 60_000
const WORKSPACES = Array.from({ length: 20 }, (_, index) => `w${index}`)

const createReport = (edgeId: string, step: number): ParsedReport => ({
  edgeId,
  epoch: 'e',
  counters: WORKSPACES.map((workspaceId) => ({
    workspaceId,
    day: DAY,
    ...noUsage,
    bytesIn: BigInt(step),
    lastSeen: DAY + step,
  })),
  tunnels: WORKSPACES.map((workspaceId) => ({ workspaceId, minute: DAY + step * MINUTE, open: 2 })),
})

/** Rows read and written by the transaction so far. PostgreSQL counts both, SQLite only changes. */
async function countRows(db: Tx, engine: Engine) {
  if (engine === 'sqlite') {
    const { rows } = await sql<{ written: number }>`select total_changes() as written`.execute(db)
    return { read: 0, written: rows[0]?.written as number }
  }
  const { rows } = await sql<{ read: string; written: string }>`
    select sum(seq_tup_read + coalesce(idx_tup_fetch, 0)) as read,
      sum(n_tup_ins + n_tup_upd + n_tup_del) as written
    from pg_stat_xact_user_tables where relname like 'usage%'`.execute(db)
  return { read: Number(rows[0]?.read), written: Number(rows[0]?.written) }
}

async function measureCost(store: Store, report: ParsedReport) {
  const cost = { read: 0, written: 0 }
  const counting: Store = {
    ...store,
    transaction: (work) =>
      store.transaction(async (tx) => {
        const before = await countRows(tx, store.engine)
        const result = await work(tx)
        const after = await countRows(tx, store.engine)
        cost.read += after.read - before.read
        cost.written += after.written - before.written
        return result
      }),
  }
  await commitReports(counting, [report])
  return cost
}

/** Other edges, epochs and days in the same workspaces. */
const addRows = (store: Store, from: number, to: number) =>
  store.transaction((db) =>
    sql`with recursive n (n) as (select cast(${from} as integer) union all select n + 1 from n where n < ${to}),
      w (w) as (values ${sql.join(WORKSPACES.map((workspace) => sql`(${workspace})`))})
      insert into usage_counters
      select w, cast(${DAY} as bigint) + (n % 2) * ${DAY_MS}, 'other_' || n, 'e' || (n % 3), 1, 1, 1, 1, null
      from n, w`.execute(db),
  )

for (const engine of engines) {
  test(`${engine}: a report reads and writes as many rows with 400 edges as with 4`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    await addRows(store, 1, 4)
    await commitReports(store, [createReport('edge_1', 1), createReport('edge_2', 1)])
    const few = await measureCost(store, createReport('edge_1', 2))
    await addRows(store, 5, 400)
    const many = await measureCost(store, createReport('edge_1', 3))
    assert.deepEqual(many, few)
    // Counters, hours of the edge, totals of the hours, days.
    assert.equal(many.written, 4 * WORKSPACES.length)
  })

  test(`${engine}: a repeated report writes nothing`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    await commitReports(store, [createReport('edge_1', 5)])
    assert.equal((await measureCost(store, createReport('edge_1', 5))).written, 0)
    const older = { ...createReport('edge_1', 4), tunnels: createReport('edge_1', 5).tunnels }
    assert.equal((await measureCost(store, older)).written, 0, 'an older report neither')
  })
}
