// Shards are moved to other workers while edges report.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addEdge, serve } from '../support/api/server.ts'
import { counter } from '../support/api/usage.ts'
import { atEnd } from '../support/cleanup.ts'
import { coordinatorUrl, onCoordinator } from '../support/databases/citus.ts'
import { query } from '../support/databases/client.ts'
import { until } from '../support/until.ts'
import { addWorkspaces } from './workspaces.ts'

const NOW = Date.parse('2026-03-01T10:30:00.000Z')
const WORKSPACES = 24
const EDGES = 3

test('a worker is removed and added again while edges report, and nothing is lost', async (t) => {
  const server = await serve(t, { engine: 'postgres', clock: () => NOW })
  const edges = await Promise.all(
    Array.from({ length: EDGES }, (_, index) => addEdge(server, `edge-${index}`)),
  )
  const { slugs, workspaces, readShards } = await addWorkspaces(server, WORKSPACES)
  const readWorkers = async () => new Set((await readShards()).map(({ worker }) => worker))

  const responses = new Map<number, number>()
  let isOver = false
  /** Increasing totals, until the last one is accepted. Returns it. */
  const reporting = edges.map(async (edge) => {
    for (let bytesIn = 1; ; bytesIn++) {
      const counters = slugs.map((workspace) => counter({ workspace, bytesIn }))
      const { status } = await edge.report({ epoch: 'e', counters })
      responses.set(status, (responses.get(status) ?? 0) + 1)
      if (isOver && status === 200) return bytesIn
    }
  })

  const [removed] = await onCoordinator(
    'select nodename, nodeport from pg_dist_node where groupid > 0 order by nodeid desc limit 1',
  )
  const address = [removed.nodename, removed.nodeport]
  const call = (statement: string) => query(coordinatorUrl(), statement, address)
  atEnd(t, async () => {
    await call('select citus_add_node($1, $2)')
    await call("select citus_set_node_property($1, $2, 'shouldhaveshards', true)")
  })
  assert.equal((await readWorkers()).has(removed.nodeport), true)
  await call('select citus_drain_node($1, $2)')
  // Copies of moved shards that are left on the worker would be in the way when it is added again.
  await onCoordinator('call citus_cleanup_orphaned_resources()')
  await call('select citus_remove_node($1, $2)')
  assert.equal((await readWorkers()).has(removed.nodeport), false)
  await call('select citus_add_node($1, $2)')
  await onCoordinator('select citus_rebalance_start()')
  await until('shards are moved back', async () => (await readWorkers()).has(removed.nodeport), 60_000)
  await onCoordinator('select citus_rebalance_wait()')

  isOver = true
  const accepted = await Promise.all(reporting)
  t.diagnostic([...responses].map(([status, times]) => `${times} × ${status}`).join(', '))
  assert.deepEqual(new Set(responses.keys()).difference(new Set([200, 503])), new Set())
  const total = accepted.reduce((sum, bytesIn) => sum + bytesIn)
  for (const { key } of workspaces)
    assert.equal((await server.call('GET', '/usage?days=1', { key: key.token })).json.totalBytes, total)
})
