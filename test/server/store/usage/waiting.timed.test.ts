// Reports get a response in time, even if the database cannot merge any.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { isUnavailable } from '../../../../src/server/store/engine/errors.ts'
import { openStore } from '../../../../src/server/store/engine/store.ts'
import { noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { commitReports } from '../../../../src/server/store/usage/commit.ts'
import { createShardQueues } from '../../../../src/server/store/usage/shard-queues.ts'
import { atEnd } from '../../../support/cleanup.ts'
import { connectPostgres, createMigratedDatabase } from '../../../support/databases/create.ts'

/** After this, the edge SDK sends the report again. */
const RESPONSE_WITHIN_MS = 15_000
const REPORTS = 20
const ITEMS = 5_000

const createReport = (edge: number): ParsedReport => ({
  edgeId: `edge_${edge}`,
  epoch: 'e',
  counters: Array.from({ length: ITEMS }, (_, index) => ({
    workspaceId: `w${index}`,
    day: 0,
    ...noUsage,
    requests: 1n,
    lastSeen: null,
  })),
  tunnels: [],
})

test('every report that waits behind a locked table is rejected in time', async (t) => {
  const url = await createMigratedDatabase(t, 'postgres')
  const ignore = () => {}
  const store = openStore(
    { engine: 'postgres', url },
    {
      onLostConnection: ignore,
      onStorageFault: ignore,
      onStorageRecovered: ignore,
    },
  )
  atEnd(t, () => store.close())
  const locker = await connectPostgres(t, url)
  await locker.query('begin; lock table usage_counters')
  const commit = createShardQueues(store, (reports) => commitReports(store, reports))
  const startedAt = performance.now()
  const errors = await Promise.all(
    Array.from({ length: REPORTS }, (_, edge) => commit(createReport(edge)).catch((error) => error)),
  )
  const ms = performance.now() - startedAt
  assert.ok(errors.every(isUnavailable))
  assert.ok(ms < RESPONSE_WITHIN_MS, `${ms} ms`)
})
