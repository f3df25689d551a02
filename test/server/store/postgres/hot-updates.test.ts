// Usage rows are updated every few seconds: their new versions stay on the page, so that no index changes and
// the space is reused without vacuum. On a PostgreSQL of its own: a session that starts keeps old versions of
// rows in all databases, for several rounds if the machine is busy.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { mergeReport } from '../../../support/api/usage.ts'
import { atEnd } from '../../../support/cleanup.ts'
import { createCluster } from '../../../support/databases/postgres.ts'
import { until } from '../../../support/until.ts'
import { open } from './open.ts'

const DAY = Date.parse('2026-03-01')
const EDGES = 3
const ROUNDS = 15
const WORKSPACES = Array.from({ length: 100 }, (_, index) => `ws_${String(index).padStart(26, '0')}`)
const UPDATES = (ROUNDS - 1) * EDGES * WORKSPACES.length
const SHARE_MIN = 0.9

const createReport = (edge: number, round: number): ParsedReport => ({
  edgeId: `edge_${String(edge).padStart(26, '0')}`,
  epoch: 'e-1',
  counters: WORKSPACES.map((workspaceId) => ({
    workspaceId,
    day: DAY,
    ...noUsage,
    requests: BigInt(round),
    bytesIn: BigInt(round * 4_821),
    lastSeen: DAY + round,
  })),
  tunnels: [],
})

test('over nine of ten updates of usage counters change no index', async (t) => {
  const cluster = await createCluster(['fsync=off', 'autovacuum=off'])
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const database = `${cluster.url}/postgres`
  const { store } = await open(database)
  const client = new pg.Client(database)
  await client.connect()
  const countUpdates = async () => {
    const { rows } = await client.query(`select n_tup_upd::integer as "all", n_tup_hot_upd::integer as hot
      from pg_stat_user_tables where relname = 'usage_counters'`)
    return rows[0] as { all: number; hot: number }
  }
  for (let round = 1; round <= ROUNDS; round++)
    await Promise.all(
      Array.from({ length: EDGES }, (_, edge) => mergeReport(store, createReport(edge, round))),
    )
  // A session reports its counts at the latest when it ends.
  await store.close()
  await until('the updates are counted', async () => (await countUpdates()).all >= UPDATES)
  const { all, hot } = await countUpdates()
  await client.end()
  const share = hot / all
  t.diagnostic(`${share}`)
  assert.ok(share > SHARE_MIN, `${share}`)
})
