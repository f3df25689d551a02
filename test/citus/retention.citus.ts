// Retention on a cluster: every deletion of usage is a statement on one shard.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import type pg from 'pg'
import { DAY_MS, HOUR_MS, startOfDay } from '../../src/lib/time.ts'
import { runNow } from '../../src/server/domain/maintenance/job.ts'
import { isMultiShard } from '../../src/server/store/engine/errors.ts'
import { groupByShard } from '../../src/server/store/engine/postgres/usage-shards.ts'
import { deleteExpired, deleteUsage } from '../../src/server/store/maintenance/retention.ts'
import { openTestServices } from '../support/api/server.ts'
import { connectPostgres } from '../support/databases/create.ts'
import { recordQueries } from '../support/databases/recorded-queries.ts'

const WORKSPACES = 500
const TODAY = startOfDay(Date.now())
const OLD = TODAY - 60 * DAY_MS

test('old usage is deleted shard by shard, by statements on one shard', async (t) => {
  const { services, database } = await openTestServices(t, 'postgres')
  const { store } = services
  assert.equal(await store.usageShards.isDistributed(), true)
  await store.transaction(async (db) => {
    await sql`insert into workspaces (id, slug, name, created_at)
      select 'ws_' || i, 'w' || i, 'W', 1 from generate_series(1, ${WORKSPACES}) as i`.execute(db)
    for (const day of [OLD, OLD + DAY_MS, TODAY])
      await sql`insert into usage_counters
        select 'ws_' || i, ${day}, 'edge_' || e, 'p', 1, 1, 1, 1, null
        from generate_series(1, ${WORKSPACES}) as i, generate_series(1, 2) as e`.execute(db)
    for (const hour of [OLD, OLD + HOUR_MS, TODAY])
      await sql`insert into usage_hours select 'ws_' || i, ${hour}, 'edge_' || e, '1'
        from generate_series(1, ${WORKSPACES}) as i, generate_series(1, 2) as e`.execute(db)
    await db
      .updateTable('maintenance')
      .set({ usage_floor: TODAY - 40 * DAY_MS, usage_floor_at: 0, usage_cursor: '' })
      .execute()
  })
  const ids = Array.from({ length: WORKSPACES }, (_, index) => `ws_${index + 1}`)
  const groups = await groupByShard(store.usageShards, ids)
  assert.ok(groups.length > 1)
  assert.deepEqual(groups.flatMap(({ workspaceIds }) => workspaceIds).toSorted(), ids.toSorted())

  const statements = recordQueries(t)
  const deleted: Record<string, number> = {}
  const result = await runNow(services, {
    signal: new AbortController().signal,
    onDeleted(table, rows) {
      deleted[table] = (deleted[table] ?? 0) + rows
    },
  })
  assert.deepEqual(result, { outcome: 'completed' })
  assert.deepEqual([deleted.usage_counters, deleted.usage_hours], [4 * WORKSPACES, 4 * WORKSPACES])
  for (const table of ['usage_counters', 'usage_hours'])
    assert.equal(await countRows(table), 2 * WORKSPACES, `${table}: the rows of today stay`)

  const ofUsage = statements.filter(({ text }) => /delete from "usage_/.test(text))
  assert.ok(ofUsage.length > groups.length)
  const client = await connectPostgres(t, database)
  for (const { text, values } of ofUsage) {
    const { rows } = await client.query(`explain ${text}`, values)
    assert.match(rows.map((row) => row['QUERY PLAN']).join('\n'), /Task Count: 1\b/)
  }

  async function countRows(table: string): Promise<number> {
    const { rows } = await sql<{ rows: number }>`select count(*) as rows from ${sql.table(table)}`.execute(
      store.db,
    )
    return Number(rows[0]?.rows)
  }
})

test('a deletion that would involve several shards is rejected: row addresses repeat there', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const { store } = services
  const workspaceIds = Array.from({ length: 20 }, (_, index) => `ws_${index}`)
  const batch = { table: 'usage_hours', workspaceIds, before: HOUR_MS } as const
  await assert.rejects(
    store.transaction((db) => deleteUsage(db, batch, 30)),
    isMultiShard,
  )
  await assert.rejects(
    store.transaction((db) => deleteExpired(db, 'usage_hours', HOUR_MS, 30)),
    isMultiShard,
  )
})

for (const [table, time] of [
  ['usage_counters', OLD],
  ['usage_hours', OLD],
] as const)
  test(`a run goes on after a shard of ${table} was split`, async (t) => {
    const { services, database } = await openTestServices(t, 'postgres')
    const { store } = services
    const values = { usage_counters: "'p', 1, 1, 1, 1, null", usage_hours: "'1'" }
    const client = await connectPostgres(t, database)
    await client.query(`insert into workspaces (id, slug, name, created_at)
      select 'ws_' || i, 'w' || i, 'W', 1 from generate_series(1, ${WORKSPACES}) as i`)
    await client.query(`insert into ${table} select id, ${time}, 'edge_1', ${values[table]} from workspaces`)
    // Null: counters are deleted already, so that the step of the table is the one that finds the split.
    const cursor = table === 'usage_counters' ? '' : null
    const floor = TODAY - 40 * DAY_MS
    await client.query('update maintenance set usage_floor = $1, usage_floor_at = 0, usage_cursor = $2', [
      floor,
      cursor,
    ])
    const ids = Array.from({ length: WORKSPACES }, (_, index) => `ws_${index + 1}`)
    for (const { shard } of await groupByShard(store.usageShards, ids)) await splitShard(client, shard.id)

    const signal = new AbortController().signal
    const result = await runNow(services, { signal, onDeleted() {} })
    assert.deepEqual(result, { outcome: 'completed' })
    assert.deepEqual((await client.query(`select 1 from ${table}`)).rows, [])
  })

/** In the middle, with the shards of the other usage tables. Both halves stay on the worker. */
const splitShard = (client: pg.Client, shard: string) =>
  client.query(
    `select citus_split_shard_by_split_points(s.shardid,
       array[((s.shardminvalue::bigint + s.shardmaxvalue::bigint) / 2)::text], array[n.nodeid, n.nodeid],
       'block_writes')
     from pg_dist_shard s join pg_dist_placement using (shardid) join pg_dist_node n using (groupid)
     where s.shardid = $1`,
    [shard],
  )
