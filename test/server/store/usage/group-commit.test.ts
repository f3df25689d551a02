// Group commit of reports, with a merge function that the test controls.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { toFault } from '../../../../src/server/domain/fault.ts'
import { DatabaseUnreachable } from '../../../../src/server/store/engine/errors.ts'
import { type UsageShards, undistributed } from '../../../../src/server/store/engine/postgres/usage-shards.ts'
import type { Store } from '../../../../src/server/store/engine/store.ts'
import { noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { createGroupCommit } from '../../../../src/server/store/usage/group-commit.ts'
import { createShardQueues } from '../../../../src/server/store/usage/shard-queues.ts'
import { addEdge, serveThroughRelay } from '../../../support/api/server.ts'
import { pluck } from '../../../support/pluck.ts'
import { until } from '../../../support/until.ts'

const createReport = (edgeId: string, items = 1): ParsedReport => ({
  edgeId,
  epoch: 'e',
  counters: Array(items).fill({ workspaceId: 'w', day: 0, ...noUsage, lastSeen: null }),
  tunnels: [],
})

/** Records the groups. `next` returns the oldest merge in progress, which ends when it is resolved. */
function controlledMerge(concurrency = 1) {
  const groups: string[][] = []
  const pending: PromiseWithResolvers<void>[] = []
  const commit = createGroupCommit(
    async (reports) => {
      groups.push(reports.map(({ edgeId }) => edgeId))
      const merge = Promise.withResolvers<void>()
      pending.push(merge)
      await merge.promise
      return reports.map(({ edgeId }) => [{ workspaceId: edgeId, day: 0, reason: 'too_large' as const }])
    },
    { concurrency },
  )
  const next = async () => {
    // The queue takes the next group in a later microtask.
    await new Promise((resolve) => setImmediate(resolve))
    return pending.shift() as PromiseWithResolvers<void>
  }
  return { commit, groups, next }
}

test('reports that arrive during a merge are merged together, each with its own result', async () => {
  const { commit, groups, next } = controlledMerge()
  const first = commit(createReport('a'))
  const others = ['b', 'c', 'd'].map((edge) => commit(createReport(edge)))
  ;(await next()).resolve()
  assert.deepEqual(pluck(await first, 'workspaceId'), ['a'])
  ;(await next()).resolve()
  const results = await Promise.all(others)
  assert.deepEqual(
    results.map(([rejected]) => rejected?.workspaceId),
    ['b', 'c', 'd'],
  )
  assert.deepEqual(groups, [['a'], ['b', 'c', 'd']])
})

test('two merges can run at a time, and the next free one takes all that wait', async () => {
  const { commit, groups, next } = controlledMerge(2)
  const all = ['a', 'b', 'c', 'd'].map((edge) => commit(createReport(edge)))
  const first = await next()
  const second = await next()
  second.resolve()
  ;(await next()).resolve()
  first.resolve()
  await Promise.all(all)
  assert.deepEqual(groups, [['a'], ['b'], ['c', 'd']])
})

test('a group is limited in items, and so is the queue: more is 503', async () => {
  const { commit, groups, next } = controlledMerge()
  const all = [
    commit(createReport('first')),
    ...Array.from({ length: 20 }, () => commit(createReport('x', 5_000))),
  ]
  const full = await commit(createReport('y', 5_000)).catch(toFault)
  assert.equal((full as { code: string }).code, 'unavailable')
  for (let index = 0; index < 21; index++) (await next()).resolve()
  await Promise.all(all)
  assert.deepEqual(groups, [['first'], ...Array(20).fill(['x'])])
  const again = commit(createReport('y', 5_000))
  ;(await next()).resolve()
  await again
})

test('one report that cannot be merged does not fail the others of its group', async () => {
  const merged: string[] = []
  const started = Promise.withResolvers<void>()
  const commit = createGroupCommit(async (reports) => {
    await started.promise
    if (reports.some(({ edgeId }) => edgeId === 'bad')) throw new Error('cannot be merged')
    merged.push(...reports.map(({ edgeId }) => edgeId))
    return reports.map(() => [])
  })
  const results = ['first', 'a', 'bad', 'b'].map((edge) => commit(createReport(edge)))
  started.resolve()
  const settled = await Promise.allSettled(results)
  assert.deepEqual(pluck(settled, 'status'), ['fulfilled', 'fulfilled', 'rejected', 'fulfilled'])
  assert.deepEqual(merged, ['first', 'a', 'b'])
})

test('while the database is unavailable, a group fails as a whole, and the next one is merged', async () => {
  let attempts = 0
  const commit = createGroupCommit(async (reports) => {
    attempts += 1
    if (attempts === 2) throw Object.assign(new Error('lock timeout'), { code: '55P03' })
    return reports.map(() => [])
  })
  const settled = await Promise.allSettled(['a', 'b', 'c'].map((edge) => commit(createReport(edge))))
  assert.deepEqual(pluck(settled, 'status'), ['fulfilled', 'rejected', 'rejected'])
  assert.deepEqual(await commit(createReport('d')), [])
  assert.equal(attempts, 3)
})

test('when the database cannot be reached, everything that waits fails with one attempt, and later reports succeed', async () => {
  let attempts = 0
  let isDown = true
  const commit = createGroupCommit(async (reports) => {
    attempts += 1
    if (isDown) throw new DatabaseUnreachable(new Error('ECONNREFUSED'))
    return reports.map(() => [])
  })
  const waiting = Array.from({ length: 10 }, () => commit(createReport('x', 5_000)))
  const settled = await Promise.allSettled(waiting)
  assert.ok(settled.every(({ status }) => status === 'rejected'))
  assert.equal(attempts, 1)
  isDown = false
  // The queue is empty again: it takes as much as before.
  const later = Array.from({ length: 20 }, () => commit(createReport('x', 5_000)))
  assert.equal((await Promise.all(later)).length, 20)
})

test('when the database fails while reports are merged one by one, the rest of them fail at once', async () => {
  let attempts = 0
  const started = Promise.withResolvers<void>()
  const commit = createGroupCommit(async (reports) => {
    await started.promise
    attempts += 1
    if (reports.length > 1) throw new Error('cannot be merged')
    if (attempts === 4) throw new DatabaseUnreachable(new Error('ECONNREFUSED'))
    return reports.map(() => [])
  })
  const results = ['first', 'a', 'b', 'c', 'd'].map((edge) => commit(createReport(edge)))
  started.resolve()
  const settled = await Promise.allSettled(results)
  assert.deepEqual(pluck(settled, 'status'), ['fulfilled', 'fulfilled', 'rejected', 'rejected', 'rejected'])
  assert.equal(attempts, 4)
})

test('reports that fail while PostgreSQL is away are counted once when they are sent again', async (t) => {
  const { server, relay } = await serveThroughRelay(t)
  const edges = await Promise.all(['a', 'b', 'c', 'd'].map((name) => addEdge(server, name)))
  const day = new Date().toISOString().slice(0, 10)
  const counter = { workspace: 'acme', day, requests: 1, bytesIn: 1, bytesOut: 1, events: 0 }
  const send = () =>
    Promise.all(edges.map(async (edge) => (await edge.report({ epoch: 'e', counters: [counter] })).status))
  assert.deepEqual(await send(), [200, 200, 200, 200])
  counter.requests = 5
  relay.cut()
  assert.deepEqual(await send(), [503, 503, 503, 503])
  relay.mend()
  await until('all are accepted', async () => (await send()).every((status) => status === 200))
  const { total } = await server.services.store.db
    .selectFrom('usage_days')
    .select((row) => row.fn.sum('requests').as('total'))
    .executeTakeFirstOrThrow()
  assert.equal(Number(total), 20)
})

test('a report for a shard that was moved runs on its new worker', async () => {
  const workers: string[] = []
  let worker = '1'
  const usageShards: UsageShards = {
    ...undistributed,
    isDistributed: async () => true,
    find: async (ids) => new Map([...ids].map((id) => [id, { id: 'shard', worker }])),
    run(shard, work) {
      workers.push(shard.worker)
      return work()
    },
  }
  const store = { engine: 'postgres', usageShards } as Store
  const merge = createShardQueues(store, async (reports) => reports.map(() => []))
  await merge(createReport('a'))
  worker = '2'
  await merge(createReport('a'))
  assert.deepEqual(workers, ['1', '2'])
})

test('on SQLite, reports that have arrived at the same time share a transaction', async () => {
  const groups: string[][] = []
  const merge = createShardQueues(
    { engine: 'sqlite', usageShards: undistributed } as Store,
    async (reports) => {
      groups.push(reports.map(({ edgeId }) => edgeId))
      return reports.map(() => [])
    },
  )
  const first = merge(createReport('a'))
  // The next request is handled before the event loop turns, but after all microtasks of the first.
  await new Promise<void>((resolve) => process.nextTick(resolve))
  await Promise.all([first, merge(createReport('b'))])
  assert.deepEqual(groups, [['a', 'b']])
})
