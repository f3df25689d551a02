// Concurrent merges of several nodes on PostgreSQL: exact to the byte, and without a deadlock.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { createLog } from '../../../../src/lib/log.ts'
import { readConfig } from '../../../../src/server/config/server.ts'
import { openServices } from '../../../../src/server/services.ts'
import { isUnavailable } from '../../../../src/server/store/engine/errors.ts'
import type { Store, Tx } from '../../../../src/server/store/engine/store.ts'
import { noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { commitReports, readDays } from '../../../../src/server/store/usage/commit.ts'
import { resetDay } from '../../../../src/server/store/usage/reset.ts'
import { atEnd, type Test } from '../../../support/cleanup.ts'
import { connectPostgres, createMigratedDatabase } from '../../../support/databases/create.ts'
import { SECRET } from '../../../support/databases/migrated-databases.ts'
import { createRandom } from '../../../support/random.ts'
import { until } from '../../../support/until.ts'

const DAY = Date.parse('2026-03-01')
const MINUTE = 60_000
const WORKSPACES = Array.from({ length: 12 }, (_, index) => `w${index}`)

async function openNodes(t: Test, count: number) {
  const database = await createMigratedDatabase(t, 'postgres')
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const open = () => openServices(config, createLog('silent'), 10_000)
  const nodes = await Promise.all(Array.from({ length: count }, open))
  for (const { store } of nodes) atEnd(t, () => store.close())
  return { database, stores: nodes.map(({ store }) => store) as [Store, ...Store[]] }
}

/** The running totals of an edge at a step: they grow with it. */
function createReport(edge: number, step: number, workspaces: readonly string[]): ParsedReport {
  return {
    edgeId: `edge_${edge}`,
    epoch: 'e',
    counters: workspaces.map((workspaceId, index) => ({
      workspaceId,
      day: DAY,
      ...noUsage,
      requests: BigInt(step),
      bytesIn: BigInt(step * 1_000 + edge + index),
      lastSeen: DAY + step,
    })),
    tunnels: workspaces.map((workspaceId) => ({ workspaceId, minute: DAY + step * MINUTE, open: edge + 1 })),
  }
}

const deadlocks = async (store: Store) => {
  const { rows } = await sql<{ deadlocks: number }>`
    select deadlocks from pg_stat_database where datname = current_database()`.execute(store.db)
  return Number(rows[0]?.deadlocks)
}

/** Counts the attempts of transactions, which are more than the calls if one was retried. */
function countAttempts(store: Store): { store: Store; retries: () => number } {
  let calls = 0
  let attempts = 0
  const counting: Store = {
    ...store,
    transaction(work) {
      calls += 1
      return store.transaction((tx) => {
        attempts += 1
        return work(tx)
      })
    },
  }
  return { store: counting, retries: () => attempts - calls }
}

test('postgres: concurrent reports of the same workspaces on two nodes add up, without deadlock or retry', async (t) => {
  const { stores } = await openNodes(t, 2)
  const counted = stores.map(countAttempts)
  const before = await deadlocks(stores[0])
  const shared = createRandom('concurrent')
  // Two reports of each edge at a time: no more than a pool has connections, so that they only wait for
  // locks.
  const edges = 5
  const steps = 8
  await Promise.all(
    Array.from({ length: edges * 2 }, async (_, index) => {
      const edge = index % edges
      const random = shared.fork(`${index}`)
      for (const step of random.shuffled(Array.from({ length: steps }, (_, each) => each + 1)))
        await commitReports((counted[random.whole(0, 2)] as { store: Store }).store, [
          createReport(edge, step, random.shuffled(WORKSPACES)),
          createReport((edge + 1) % edges, step, random.shuffled(WORKSPACES).slice(0, 3)),
        ])
    }),
  )
  // Edges repeat their last total until it is acknowledged.
  for (let edge = 0; edge < edges; edge++)
    await commitReports(stores[0], [createReport(edge, steps, WORKSPACES)])
  for (const workspaceId of WORKSPACES) {
    const [day] = await readDays(stores[0].db, workspaceId, DAY, DAY)
    const counters = await stores[0].db
      .selectFrom('usage_counters')
      .select((row) => [
        row.fn.sum<string>('requests').as('requests'),
        row.fn.sum<string>('bytes_in').as('bytesIn'),
      ])
      .where('workspace_id', '=', workspaceId)
      .executeTakeFirstOrThrow()
    assert.equal(day?.requests, BigInt(steps * edges))
    assert.deepEqual([day?.requests, day?.bytesIn], [BigInt(counters.requests), BigInt(counters.bytesIn)])
    assert.equal(day?.peakTunnels, (edges * (edges + 1)) / 2)
  }
  assert.equal(await deadlocks(stores[0]), before)
  assert.deepEqual(
    counted.map(({ retries }) => retries()),
    [0, 0],
  )
})

test('postgres: a reset among concurrent reports leaves exactly what was reported after it', async (t) => {
  const { stores } = await openNodes(t, 2)
  const [store] = stores
  const random = createRandom('reset')
  const edges = 4
  const steps = 10
  const reset = async (edgeId?: string) => {
    const day = { workspaceId: random.pick(WORKSPACES), day: DAY }
    await store.transaction((db) => resetDay({ db, isDistributed: false }, day, edgeId))
  }
  await Promise.all([
    ...Array.from({ length: edges }, async (_, edge) => {
      for (let step = 1; step <= steps; step++)
        await commitReports(random.pick(stores), [createReport(edge, step, random.shuffled(WORKSPACES))])
    }),
    ...Array.from({ length: 8 }, (_, index) => reset(index % 2 ? `edge_${index % edges}` : undefined)),
  ])
  for (const workspaceId of WORKSPACES) {
    const { rows } = await sql<{ bytes: string }>`
      select cast(coalesce(sum(bytes_in), 0) as text) as bytes from usage_counters
      where workspace_id = ${workspaceId}`.execute(store.db)
    const [day] = await readDays(store.db, workspaceId, DAY, DAY)
    assert.equal(day?.bytesIn ?? 0n, BigInt(rows[0]?.bytes as string), workspaceId)
  }
  for (let edge = 0; edge < edges; edge++) await commitReports(store, [createReport(edge, steps, WORKSPACES)])
  for (const workspaceId of WORKSPACES) {
    const [day] = await readDays(store.db, workspaceId, DAY, DAY)
    assert.equal(day?.requests, BigInt(edges * steps), 'the running epochs count in full again')
    assert.equal(day?.peakTunnels, (edges * (edges + 1)) / 2)
  }
})

test('postgres: a merge that checks the totals of days locks the hours first, like every merge', async (t) => {
  const { database, stores } = await openNodes(t, 1)
  const [store] = stores
  const other = await connectPostgres(t, database)
  await commitReports(store, [createReport(0, 1, ['w0'])])
  await other.query('update usage_days set bytes_in = 9223372036854775807')
  let calls = 0
  const watched: Store = {
    ...store,
    async transaction(work) {
      calls += 1
      // The first attempt exceeds 63 bits.
      if (calls === 2) {
        await other.query('begin')
        await other.query("select 1 from usage_hours where edge_id = '' for update")
      }
      return store.transaction(work)
    },
  }
  const merge = commitReports(watched, [createReport(0, 2, ['w0'])])
  await until('the merge waits for the hour', async () => {
    // Not from pg_locks, which has the locks of tests on other databases.
    const { rows } = await sql`select 1 from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'`.execute(store.db)
    return rows.length > 0
  })
  await other.query('select 1 from usage_days for update nowait')
  await other.query('rollback')
  assert.deepEqual(await merge, [[{ workspaceId: 'w0', day: DAY, reason: 'too_large' }]])
})

test('postgres: a report whose rows disappear after every attempt fails with 503', async (t) => {
  const { stores } = await openNodes(t, 1)
  const [store] = stores
  const undone = new Error('rolled back')
  const undoing: Store = {
    ...store,
    transaction: <T>(work: (tx: Tx) => Promise<T>) =>
      store
        .transaction(async (tx) => {
          await work(tx)
          throw undone
        })
        .catch((error) => {
          if (error !== undone) throw error
          return undefined as T
        }),
  }
  await assert.rejects(commitReports(undoing, [createReport(0, 1, ['w0'])]), isUnavailable)
})
