// The cache of reported counters on SQLite: whatever else changes the database, usage stays exact.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import fc from 'fast-check'
import { createLog } from '../../../../src/lib/log.ts'
import { DAY_MS } from '../../../../src/lib/time.ts'
import { openServices } from '../../../../src/server/services.ts'
import type { Store } from '../../../../src/server/store/engine/store.ts'
import { NO_LIMIT } from '../../../../src/server/store/engine/usage-limits.ts'
import { type Counter, noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { commitReports, readDays } from '../../../../src/server/store/usage/commit.ts'
import { resetDay } from '../../../../src/server/store/usage/reset.ts'
import { openTestServices } from '../../../support/api/server.ts'
import { atEnd, type Test } from '../../../support/cleanup.ts'

const DAY = Date.parse('2026-03-01')
/** Counters above 50 requests are merged without the cache. */
const EDGE_MAX = { ...NO_LIMIT, requests: 5_000n }

/** Two processes with the same file. */
async function openTwice(t: Test): Promise<{ stores: [Store, Store]; path: string }> {
  const { config, services, database } = await openTestServices(t, 'sqlite')
  const other = await openServices(config, createLog('silent'), 10_000)
  atEnd(t, () => other.store.close())
  return { stores: [services.store, other.store], path: database.slice('sqlite:'.length) }
}

const counter = (fields: Partial<Counter>): Counter => ({
  workspaceId: 'w1',
  day: DAY,
  ...noUsage,
  lastSeen: null,
  ...fields,
})

const report = (counters: Counter[], edgeId = 'edge_1', epoch = 'e1'): ParsedReport => ({
  edgeId,
  epoch,
  counters,
  tunnels: [],
})

const readRequests = async (store: Store, workspaceId = 'w1') =>
  (await readDays(store.db, workspaceId, 0, Number.MAX_SAFE_INTEGER)).map(({ requests }) => requests)

/** A store whose transactions fail after their work. */
const failing = (store: Store): Store => ({
  ...store,
  transaction: (work) =>
    store.transaction(async (tx) => {
      await work(tx)
      throw new Error('failed by the test')
    }),
})

test('sqlite: usage is exact after any reports, resets, failures and VACUUM of two processes', async (t) => {
  const { stores, path } = await openTwice(t)
  const file = new DatabaseSync(path)
  atEnd(t, async () => file.close())
  const workspaces = ['a', 'b']
  const days = [DAY, DAY + DAY_MS]
  const item = fc.record({
    workspace: fc.constantFrom(...workspaces),
    day: fc.constantFrom(DAY, ...days),
    edge: fc.constantFrom('x', 'x', 'x', 'y'),
    requests: fc.nat(99),
  })
  const step = fc.record({
    kind: fc.constantFrom(...Array<'report'>(12).fill('report'), 'fail', 'reset', 'vacuum'),
    process: fc.constantFrom(0, 0, 0, 1),
    items: fc.array(item, { minLength: 1, maxLength: 6 }),
  })
  let run = 0
  await fc.assert(
    fc.asyncProperty(fc.array(step, { minLength: 20, maxLength: 40, size: 'max' }), async (steps) => {
      run += 1
      const named = (workspace: string) => `${workspace}${run}`
      /** By workspace and day, then edge. */
      const model = new Map<string, Map<string, bigint>>()
      for (const { kind, process, items } of steps) {
        const store = stores[process] as Store
        const reports = items.map(({ workspace, day, edge, requests }) =>
          report([counter({ workspaceId: named(workspace), day, requests })], edge),
        )
        if (kind === 'report') {
          await commitReports(store, reports, EDGE_MAX)
          for (const { workspace, day, edge, requests } of items) {
            const edges = model.get(`${workspace} ${day}`) ?? new Map<string, bigint>()
            const before = edges.get(edge) ?? 0n
            edges.set(edge, before < requests ? BigInt(requests) : before)
            model.set(`${workspace} ${day}`, edges)
          }
        } else if (kind === 'fail') await assert.rejects(commitReports(failing(store), reports, EDGE_MAX))
        else if (kind === 'vacuum') file.exec('vacuum')
        else {
          const { workspace, day } = items[0] as (typeof items)[number]
          await store.transaction((db) =>
            resetDay({ db, isDistributed: false }, { workspaceId: named(workspace), day }),
          )
          model.delete(`${workspace} ${day}`)
        }
      }
      for (const workspace of workspaces) {
        const expected = days.flatMap((day) => {
          const total = [...(model.get(`${workspace} ${day}`)?.values() ?? [])].reduce((a, b) => a + b, 0n)
          return total === 0n ? [] : [total]
        })
        assert.deepEqual(await readRequests(stores[0], named(workspace)), expected)
      }
    }),
    { numRuns: 25 },
  )
})

test('sqlite: a repeated counter that is cached adds nothing to its day', async (t) => {
  const { stores } = await openTwice(t)
  const [store] = stores
  const send = (requests: number, seen: number) =>
    commitReports(store, [report([counter({ requests, lastSeen: DAY + seen })])])
  for (const [requests, seen] of [
    [5, 10],
    [7, 20],
    [7, 20],
    [6, 15],
    [9, 5],
  ] as const)
    await send(requests, seen)
  const [day] = await store.db.selectFrom('usage_days').select(['requests', 'last_seen']).execute()
  assert.deepEqual({ ...day }, { requests: 9, last_seen: DAY + 20 })
})

test('sqlite: a cached counter is read again after a failed commit, and after a value above the limit', async (t) => {
  const { stores } = await openTwice(t)
  const [store] = stores
  const send = async (requests: number, to = store) => {
    await commitReports(to, [report([counter({ requests })])], EDGE_MAX)
    return readRequests(store)
  }
  await send(1)
  assert.deepEqual(await send(2), [2n])
  await assert.rejects(send(5, failing(store)), /failed by the test/)
  assert.deepEqual(await send(5), [5n])
  assert.deepEqual(await send(60), [60n])
  assert.deepEqual(await send(40), [60n])
})

test('sqlite: edges whose counters are cached, in one group and for the same days, all count', async (t) => {
  const { stores } = await openTwice(t)
  const [store] = stores
  const workspaces = Array.from({ length: 120 }, (_, index) => `w${index}`)
  for (const requests of [1, 5, 8])
    await commitReports(
      store,
      ['x', 'y', 'z'].map((edge) =>
        report(
          workspaces.flatMap((workspaceId) => [
            counter({ workspaceId, requests }),
            counter({ workspaceId, requests: requests + 1 }),
          ]),
          edge,
        ),
      ),
    )
  for (const workspaceId of workspaces) assert.deepEqual(await readRequests(store, workspaceId), [27n])
})

test('sqlite: a cached counter that would overflow its day is rejected, and the others are merged', async (t) => {
  const { stores } = await openTwice(t)
  const [store] = stores
  const send = (requests: number) =>
    commitReports(store, [
      report([counter({ requests }), counter({ workspaceId: 'w2', requests })]),
      report([counter({ workspaceId: 'w3', requests })], 'edge_2'),
    ])
  await send(1)
  await commitReports(store, [report([counter({ requests: 2n ** 63n - 5n })], 'edge_large')])
  assert.deepEqual(await send(4), [[], []])
  assert.deepEqual(await send(5), [[{ workspaceId: 'w1', day: DAY, reason: 'too_large' }], []])
  assert.deepEqual(await readRequests(store), [2n ** 63n - 1n])
  assert.deepEqual(await readRequests(store, 'w2'), [5n])
  assert.deepEqual(await readRequests(store, 'w3'), [5n])
})

test('sqlite: the cache is bounded, however many counters and epochs are reported', async (t) => {
  const { stores } = await openTwice(t)
  const [store] = stores
  const counters = Array.from({ length: 5_000 }, (_, index) =>
    counter({ workspaceId: `w${index}`, requests: 1 }),
  )
  const size = () => store.counterCache?.size ?? Number.NaN
  for (let edge = 0; edge < 11; edge++)
    for (let times = 0; times < 2; times++) await commitReports(store, [report(counters, `edge_${edge}`)])
  assert.ok(size() > 40_000 && size() <= 50_000, `${size()} are cached`)
  for (let epoch = 0; epoch < 100; epoch++)
    await commitReports(
      store,
      Array.from({ length: 100 }, (_, part) => report([counter({})], 'edge_0', `${epoch}-${part}`)),
    )
  assert.ok(size() <= 50_000, `${size()} are cached`)
  assert.deepEqual(await readRequests(store), [11n])
})
