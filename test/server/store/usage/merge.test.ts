// The merge as a pure function: whatever the order, grouping and repetition of reports, the result is the
// maximum of each counter, and the differences add up to the sum of the maxima.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../../../src/lib/time.ts'
import { EPOCHS_MAX, NO_LIMIT } from '../../../../src/server/store/engine/usage-limits.ts'
import {
  type CounterRow,
  counterFields,
  dayKey,
  edgeDayKey,
  hourKey,
  noUsage,
  type Totals,
  type TunnelHour,
  toCounterRow,
} from '../../../../src/server/store/engine/usage-report.ts'
import {
  addHours,
  decodeHour,
  encodeHour,
  mergeHours,
  subtractHours,
} from '../../../../src/server/store/usage/hours.ts'
import { type DayDelta, type MergeInput, mergeCounters } from '../../../../src/server/store/usage/merge.ts'
import { createRandom, type Random } from '../../../support/random.ts'

const RUNS = 300
const DAY = Date.parse('2026-03-01')

function randomRow(random: Random): CounterRow {
  const day = DAY + random.whole(0, 2) * DAY_MS
  const total = () => BigInt(random.pick([0, 1, 5, 2 ** 40, Number.MAX_SAFE_INTEGER, random.whole(0, 1000)]))
  return toCounterRow(random.pick(['x', 'y']), random.pick(['1', '2']), {
    workspaceId: random.pick(['a', 'b', 'c']),
    day,
    requests: total(),
    bytesIn: total(),
    bytesOut: total(),
    events: total(),
    lastSeen: random.chance(0.3) ? null : day + random.whole(0, 100),
  })
}

/** The rows and days that a database would store. */
class Model {
  readonly rows = new Map<string, CounterRow>()
  readonly days = new Map<string, Totals & { lastSeen: number | null }>()

  merge(reported: readonly CounterRow[], fields: Partial<MergeInput> = {}) {
    const result = mergeCounters({
      stored: this.rows,
      reported,
      edges: new Map(),
      edgeMax: NO_LIMIT,
      ...fields,
    })
    for (const [key, row] of result.rows) this.rows.set(key, row)
    for (const [key, delta] of result.deltas) this.days.set(key, this.#add(key, delta))
    return result
  }

  #add(key: string, delta: DayDelta) {
    const { lastSeen, ...sums } = this.days.get(key) ?? { ...noUsage, lastSeen: null }
    for (const field of counterFields) {
      assert.ok(delta[field] >= 0n)
      sums[field] += delta[field]
    }
    const seen = Math.max(lastSeen ?? 0, delta.lastSeen ?? 0)
    return { ...sums, lastSeen: seen === 0 ? null : seen }
  }

  get state() {
    const sorted = <T>(map: ReadonlyMap<string, T>) => [...map].sort(([a], [b]) => (a < b ? -1 : 1))
    return { rows: sorted(this.rows), days: sorted(this.days) }
  }
}

/** Splits into reports of random lengths. */
function grouped<T>(random: Random, items: readonly T[]): T[][] {
  const groups: T[][] = []
  for (let start = 0; start < items.length; ) {
    const end = start + random.whole(1, 8)
    groups.push(items.slice(start, end))
    start = end
  }
  return groups
}

test('any order, grouping and repetition of reports gives the same rows and days', () => {
  for (let run = 0; run < RUNS; run++) {
    const random = createRandom(`order ${run}`)
    const rows = Array.from({ length: random.whole(1, 25) }, () => randomRow(random))
    const expected = new Model()
    expected.merge(rows)
    const model = new Model()
    const repeated = random.shuffled([...rows, ...rows.filter(() => random.chance(0.5))])
    for (const group of grouped(random, repeated)) model.merge(group)
    assert.deepEqual(model.state, expected.state, `run ${run}`)
  }
})

test('the differences add up to the sum of the maxima', () => {
  for (let run = 0; run < RUNS; run++) {
    const random = createRandom(`sum ${run}`)
    const rows = Array.from({ length: random.whole(1, 25) }, () => randomRow(random))
    const model = new Model()
    for (const group of grouped(random, random.shuffled([...rows, ...rows]))) model.merge(group)
    const expected = new Map<string, bigint>()
    for (const key of new Set(rows.map((row) => row.key))) {
      const mine = rows.filter((row) => row.key === key)
      const day = dayKey(mine[0] as CounterRow)
      const most = mine.reduce((max, row) => (row.bytesIn > max ? row.bytesIn : max), 0n)
      expected.set(day, (expected.get(day) ?? 0n) + most)
    }
    for (const [day, total] of expected) assert.equal(model.days.get(day)?.bytesIn, total, `run ${run}`)
  }
})

test('a repeated or older report changes no row and no day', () => {
  const random = createRandom('repeated')
  const rows = Array.from({ length: 50 }, () => randomRow(random))
  const model = new Model()
  model.merge(rows)
  const { rows: changed, deltas } = model.merge(random.shuffled(rows))
  assert.deepEqual([changed.size, deltas.size], [0, 0])
})

test('epochs of an edge are counted within a group, and known epochs continue', () => {
  const row = (epoch: number, requests: bigint) =>
    toCounterRow('x', `e${epoch}`, { workspaceId: 'a', day: DAY, ...noUsage, requests, lastSeen: null })
  const reported = Array.from({ length: EPOCHS_MAX + 5 }, (_, index) => row(index, 1n))
  const model = new Model()
  const edge = edgeDayKey(reported[0] as CounterRow)
  const edges = new Map([[edge, { epochs: 3, sums: noUsage }]])
  const { rejected } = model.merge(reported, { edges })
  assert.deepEqual([...rejected.values()], Array(8).fill('too_many_epochs'))
  assert.equal(model.rows.size, EPOCHS_MAX - 3)
  const full = new Map([[edge, { epochs: EPOCHS_MAX, sums: noUsage }]])
  assert.equal(model.merge([row(0, 9n), row(EPOCHS_MAX, 9n)], { edges: full }).rejected.size, 1)
  assert.equal(model.rows.get(row(0, 0n).key)?.requests, 9n)
})

test('the sum of an edge over its epochs and the sum of a day stay within their limits', () => {
  for (let run = 0; run < RUNS; run++) {
    const random = createRandom(`limits ${run}`)
    const limit = 10_000n
    const edgeMax = { requests: limit, bytesIn: limit, bytesOut: limit, events: limit }
    const model = new Model()
    const sums = new Map<string, bigint>()
    for (let report = 0; report < 5; report++) {
      const reported = Array.from({ length: 6 }, () =>
        toCounterRow(random.pick(['x', 'y']), random.pick(['1', '2', '3']), {
          workspaceId: 'a',
          day: DAY,
          ...noUsage,
          bytesIn: BigInt(random.whole(101, 9_000)),
          lastSeen: null,
        }),
      )
      const edges = new Map(
        [...sums].map(([key, bytesIn]) => [key, { epochs: 1, sums: { ...noUsage, bytesIn } }]),
      )
      model.merge(reported, { edges, edgeMax })
      sums.clear()
      for (const row of model.rows.values())
        sums.set(edgeDayKey(row), (sums.get(edgeDayKey(row)) ?? 0n) + row.bytesIn)
      for (const sum of sums.values()) assert.ok(sum <= limit, `run ${run}`)
    }
  }
  const huge = toCounterRow('x', '1', {
    workspaceId: 'a',
    day: DAY,
    ...noUsage,
    bytesIn: 10n,
    lastSeen: null,
  })
  const other = toCounterRow('y', '1', { ...huge, bytesIn: 9n })
  const daySums = new Map([[dayKey(huge), { ...noUsage, bytesIn: NO_LIMIT.bytesIn - 9n }]])
  const { rejected, rows } = new Model().merge([huge, other], { daySums })
  assert.deepEqual([rejected.get(huge), rejected.size, [...rows.keys()]], ['too_large', 1, [other.key]])
})

test('an hour is encoded as runs and decoded without loss', () => {
  assert.equal(encodeHour([...Array(10).fill(0), 3, 3, 4, ...Array(47).fill(0)]), '0*10 3*2 4')
  assert.equal(encodeHour(Array(60).fill(0)), '')
  assert.equal(encodeHour(Array(60).fill(1_000_000)), '1000000*60')
  const random = createRandom('hours')
  for (let run = 0; run < RUNS; run++) {
    const peaks = [0, 0, random.whole(0, 9), random.whole(0, 1_000_001)]
    const open = Array.from({ length: 60 }, () => random.pick(peaks))
    assert.deepEqual(decodeHour(encodeHour(open)), open)
  }
})

test('the totals of hours are the sum over the edges of their maxima, and the peak is their maximum', () => {
  for (let run = 0; run < RUNS; run++) {
    const random = createRandom(`peaks ${run}`)
    const hours = Array.from({ length: random.whole(1, 12) }, (): TunnelHour => {
      const open = Array.from({ length: 60 }, () => (random.chance(0.1) ? random.whole(1, 9) : 0))
      const hour = DAY + random.pick([0, 23]) * HOUR_MS
      return { workspaceId: 'a', hour, edgeId: random.pick(['x', 'y', 'z']), open }
    })
    const stored = new Map<string, readonly number[]>()
    let peak = 0
    for (const hour of random.shuffled([...hours, ...hours])) {
      const { rows, deltas } = mergeHours(stored, [hour])
      for (const row of rows) stored.set(hourKey(row), row.open)
      const days = new Map<string, DayDelta>()
      for (const total of addHours(stored, deltas, days)) stored.set(hourKey(total), total.open)
      for (const { peakTunnels } of days.values()) peak = Math.max(peak, peakTunnels)
    }
    const all = [...stored].map(([key, open]) => ({ key, open }))
    const totals = all.filter(({ key }) => key.endsWith(' '))
    const edges = all.filter(({ key }) => !key.endsWith(' '))
    for (const { key, open } of totals) {
      const mine = edges.filter((edge) => edge.key.startsWith(key))
      const expected = open.map((_, minute) =>
        mine.reduce((sum, edge) => sum + (edge.open[minute] as number), 0),
      )
      assert.deepEqual(open, expected, `run ${run}`)
    }
    assert.equal(peak, Math.max(0, ...totals.flatMap(({ open }) => open)), `run ${run}`)
  }
})

test('hours of edges can be subtracted from the totals again', () => {
  const hour = (edgeId: string, open: number): TunnelHour => ({
    workspaceId: 'a',
    hour: DAY,
    edgeId,
    open: Array(60).fill(open),
  })
  assert.deepEqual(subtractHours([hour('', 7)], [hour('x', 2), hour('y', 4)]), [hour('', 1)])
})
