// Merging usage reports, directly on both engines.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { DAY_MS } from '../../../../src/lib/time.ts'
import type { Store } from '../../../../src/server/store/engine/store.ts'
import { type Counter, noUsage, type ParsedReport } from '../../../../src/server/store/engine/usage-report.ts'
import { readDays, readUsage } from '../../../../src/server/store/usage/commit.ts'
import { insertDays } from '../../../../src/server/store/usage/rows.ts'
import { openTestServices } from '../../../support/api/server.ts'
import { mergeReport } from '../../../support/api/usage.ts'
import type { Test } from '../../../support/cleanup.ts'
import { type Engine, engines } from '../../../support/databases/create.ts'

const DAY = Date.parse('2026-03-01T00:00:00.000Z')
const MINUTE = 60_000

async function openStore(t: Test, engine: Engine): Promise<Store> {
  const { services } = await openTestServices(t, engine)
  return services.store
}

const counter = (fields: Partial<Counter>): Counter => ({
  workspaceId: 'w1',
  day: DAY,
  requests: 0n,
  bytesIn: 0n,
  bytesOut: 0n,
  events: 0n,
  lastSeen: null,
  ...fields,
})

const report = (fields: Partial<ParsedReport>): ParsedReport => ({
  edgeId: 'edge_1',
  epoch: 'e1',
  counters: [],
  tunnels: [],
  ...fields,
})

const allDays = (store: Store, workspaceId = 'w1') =>
  readDays(store.db, workspaceId, 0, Number.MAX_SAFE_INTEGER)

for (const engine of engines) {
  test(`${engine}: each counter keeps its own maximum, even within one report`, async (t) => {
    const store = await openStore(t, engine)
    await mergeReport(
      store,
      report({
        counters: [
          counter({ requests: 1n, bytesOut: 7n, lastSeen: DAY + 3 }),
          counter({ requests: 4n, bytesOut: 2n }),
          counter({ events: 6n, lastSeen: DAY + 1 }),
        ],
      }),
    )
    const [day] = await allDays(store)
    assert.deepEqual(day, { day: DAY, requests: 4n, bytesIn: 0n, bytesOut: 7n, events: 6n, peakTunnels: 0 })
    assert.equal((await readUsage(store.db, 'w1', 0, 0)).lastSeen, DAY + 3)
  })

  test(`${engine}: counters are exact up to 63 bits`, async (t) => {
    const store = await openStore(t, engine)
    const most = 2n ** 63n - 1n
    await mergeReport(store, report({ counters: [counter({ bytesIn: most - 5n })] }))
    await mergeReport(store, report({ epoch: 'e2', counters: [counter({ bytesIn: 5n })] }))
    assert.equal((await allDays(store))[0]?.bytesIn, most)
  })

  test(`${engine}: a report too large for one statement is stored completely`, async (t) => {
    const store = await openStore(t, engine)
    const counters = Array.from({ length: 2_600 }, (_, index) =>
      counter({
        workspaceId: `w${index % 1300}`,
        day: DAY - (index % 2) * DAY_MS,
        requests: BigInt(index + 1),
      }),
    )
    const tunnels = Array.from({ length: 2_400 }, (_, index) => ({
      workspaceId: 'w1',
      minute: DAY + (index % 1440) * MINUTE,
      open: index,
    }))
    await mergeReport(store, report({ counters, tunnels }))
    const { count } = await store.db
      .selectFrom('usage_days')
      .select((row) => row.fn.countAll<number>().as('count'))
      .executeTakeFirstOrThrow()
    assert.equal(count, 1301)
    assert.equal((await allDays(store)).find((day) => day.day === DAY)?.peakTunnels, 2_399)
  })

  test(`${engine}: concurrent reports for the same workspaces lose nothing and do not deadlock`, async (t) => {
    const store = await openStore(t, engine)
    const workspaces = ['w1', 'w2', 'w3', 'w4', 'w5']
    const reports = Array.from({ length: 24 }, (_, index) =>
      report({
        edgeId: `edge_${index % 6}`,
        epoch: `e${index}`,
        counters: (index % 2 ? workspaces : workspaces.toReversed()).map((workspaceId) =>
          counter({ workspaceId, requests: 1n, bytesIn: BigInt(index) }),
        ),
        tunnels: workspaces.map((workspaceId) => ({ workspaceId, minute: DAY, open: index })),
      }),
    )
    await Promise.all(reports.map((one) => mergeReport(store, one)))
    for (const workspaceId of workspaces) {
      const [day] = await allDays(store, workspaceId)
      assert.equal(day?.requests, 24n)
      assert.equal(day?.bytesIn, 276n)
      assert.equal(day?.peakTunnels, 18 + 19 + 20 + 21 + 22 + 23)
    }
  })

  test(`${engine}: after any history of reports, the days equal a simple model`, async (t) => {
    const store = await openStore(t, engine)
    const small = fc.bigInt({ min: 0n, max: 2n ** 53n - 1n })
    const item = fc.record({
      workspace: fc.constantFrom('a', 'b'),
      day: fc.constantFrom(DAY, DAY + DAY_MS),
      edge: fc.constantFrom('x', 'y'),
      epoch: fc.constantFrom('1', '2'),
      requests: small,
      bytes: small,
      seen: fc.integer({ min: 0, max: DAY_MS - 1 }),
      open: fc.integer({ min: 0, max: 50 }),
      minute: fc.constantFrom(0, 1, 1439),
    })
    let run = 0
    await fc.assert(
      fc.asyncProperty(
        fc.array(item, { maxLength: 12 }),
        fc.array(fc.nat(11), { maxLength: 6 }),
        async (items, again) => {
          run += 1
          const named = (workspace: string) => `${workspace}${run}`
          const history = [...items, ...again.flatMap((index) => items[index] ?? [])]
          for (const one of history) {
            const workspaceId = named(one.workspace)
            await mergeReport(store, {
              edgeId: one.edge,
              epoch: one.epoch,
              counters: [
                {
                  ...counter({ workspaceId, day: one.day, lastSeen: one.day + one.seen }),
                  requests: one.requests,
                  bytesIn: one.bytes,
                },
              ],
              tunnels: [{ workspaceId, minute: one.day + one.minute * MINUTE, open: one.open }],
            })
          }
          for (const workspace of ['a', 'b'])
            assert.deepEqual(await allDays(store, named(workspace)), model(items, workspace))
        },
      ),
      { numRuns: 25 },
    )
  })
}

interface Item {
  workspace: string
  day: number
  edge: string
  epoch: string
  requests: bigint
  bytes: bigint
  open: number
  minute: number
}

/**
 * The truth, written in the plainest way: maxima per edge and epoch, summed; minutes summed over edges, the
 * largest.
 */
function model(items: Item[], workspace: string) {
  const mine = items.filter((item) => item.workspace === workspace)
  const days = [...new Set(mine.map((item) => item.day))].sort((a, b) => a - b)
  return days.map((day) => {
    const today = mine.filter((item) => item.day === day)
    const sumOfMaxima = (getKey: (item: Item) => string, getValue: (item: Item) => bigint) => {
      const maxima = new Map<string, bigint>()
      for (const item of today) {
        const present = maxima.get(getKey(item)) ?? 0n
        if (getValue(item) >= present) maxima.set(getKey(item), getValue(item))
      }
      return [...maxima.values()].reduce((sum, value) => sum + value, 0n)
    }
    const source = (item: Item) => `${item.edge} ${item.epoch}`
    const minutes = [...new Set(today.map((item) => item.minute))].map((minute) =>
      sumOfMaxima(
        (item) => item.edge,
        (item) => (item.minute === minute ? BigInt(item.open) : 0n),
      ),
    )
    return {
      day,
      requests: sumOfMaxima(source, (item) => item.requests),
      bytesIn: sumOfMaxima(source, (item) => item.bytes),
      bytesOut: 0n,
      events: 0n,
      peakTunnels: Math.max(...minutes.map(Number)),
    }
  })
}

test('postgres: more values than a statement can have parameters are inserted completely', async (t) => {
  const store = await openStore(t, 'postgres')
  const days = Array.from({ length: 9_000 }, (_, index) => ({
    ...noUsage,
    workspaceId: 'w1',
    day: index,
    lastSeen: null,
    peakTunnels: 1,
  }))
  await store.transaction((db) => insertDays({ db, isDistributed: true }, days))
  assert.equal((await allDays(store)).length, days.length)
})
