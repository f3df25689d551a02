// Merging on a real cluster: every statement runs on one shard, and shards do not wait for each other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { resetUsage, showCounters } from '../../src/server/domain/usage/reset.ts'
import { createUsageShards } from '../../src/server/store/engine/postgres/usage-shards.ts'
import {
  addEdge,
  databaseUrl,
  openTestServices,
  operator,
  serve,
  serveWithEdge,
} from '../support/api/server.ts'
import { counter } from '../support/api/usage.ts'
import { coordinatorUrl } from '../support/databases/citus.ts'
import { query } from '../support/databases/client.ts'
import { connectPostgres } from '../support/databases/create.ts'
import { pluck } from '../support/pluck.ts'
import { addWorkspaces } from './workspaces.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const WORKSPACES = 24

test('every statement of a report, of a read and of a reset runs on one shard', async (t) => {
  const server = await serve(t, { engine: 'postgres', clock: () => NOW })
  const edges = [await addEdge(server, 'one'), await addEdge(server, 'two')]
  const { slugs, workspaces, readShards } = await addWorkspaces(server, WORKSPACES)
  const shards = await readShards()
  assert.equal(new Set(shards.map(({ worker }) => worker)).size, 2, 'workspaces on both workers')
  const before = await executions()
  for (const bytesIn of [10, 30, 30, 20])
    await Promise.all(
      edges.map(async (edge) => {
        const { status, json } = await edge.report({
          epoch: 'e',
          counters: slugs.map((workspace) => counter({ workspace, bytesIn })),
          tunnels: slugs.map((workspace) => ({ workspace, minute: '2026-03-01T10:02:00.000Z', open: 1 })),
        })
        assert.deepEqual([status, json.accepted, json.rejected], [200, 2 * WORKSPACES, []])
      }),
    )
  for (const { key } of workspaces) {
    const { json } = await server.call('GET', '/usage?days=1', { key: key.token })
    assert.deepEqual([json.totalBytes, json.peakTunnels], [60, 2])
  }
  const reset = { workspace: 'w-0', day: '2026-03-01', edge: edges[0]?.id }
  assert.equal((await resetUsage(server.services, operator, reset)).counters, 1)
  const after = await executions()
  assert.equal(after.multi - before.multi, 0, 'statements on several shards')
  assert.ok(after.single - before.single > WORKSPACES)
  t.diagnostic(`${after.single - before.single} statements, each on one shard`)
  const counters = await showCounters(server.services, 'w-0', '2026-03-01')
  assert.deepEqual(pluck(counters, 'name', 'bytesIn'), [['two', 30n]])
})

/** Counted by Citus; the servers of tests enable that. */
async function executions() {
  const [row] = await query(
    coordinatorUrl(),
    `select query_execution_single_shard::integer as single, query_execution_multi_shard::integer as multi
     from citus_stat_counters where name = current_database()`,
  )
  return row as { single: number; multi: number }
}

test('a report that waits for a lock does not delay reports for other shards', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'postgres', clock: () => NOW })
  const { slugs, workspaces, readShards } = await addWorkspaces(server, WORKSPACES)
  const shards = await readShards()
  const report = (slugs: string[], bytesIn: number) =>
    edge.report({ epoch: 'e', counters: slugs.map((workspace) => counter({ workspace, bytesIn })) })
  await report(slugs, 1)
  const client = await connectPostgres(t, databaseUrl(server))
  await client.query('begin')
  await client.query('update usage_days set day = day where workspace_id = $1', [workspaces[0]?.workspace.id])
  const others = slugs.filter((_, index) => shards[index]?.shard !== shards[0]?.shard)
  let waited = true
  const waiting = report(['w-0'], 2).finally(() => {
    waited = false
  })
  assert.equal((await report(others, 2)).status, 200)
  assert.ok(waited, 'the first report still waits')
  await client.query('rollback')
  assert.equal((await waiting).status, 200)
})

test('shards that are invalidated while others are read are still returned', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const { store } = services
  const ids = Array.from({ length: WORKSPACES }, (_, index) => `ws_${index}`)
  const expected = await store.usageShards.find(ids)
  const shards = createUsageShards(store.db)
  await shards.find(ids.slice(1))
  const finding = shards.find(ids)
  await setImmediate()
  shards.invalidate()
  assert.deepEqual(await finding, expected)
})
