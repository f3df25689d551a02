// Back-pressure on usage reports: simulated edges that obey the interval, and one node that merges.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { REPORT_INTERVAL_MAX_S, REPORT_INTERVAL_S } from '../../src/contract/reports.ts'
import { Fault } from '../../src/domain/fault.ts'
import { createReportPacing, MERGE_SHARE, paceReport } from '../../src/domain/report-pacing.ts'

interface Simulated {
  /** Items of each edge's report. */
  edges: number[]
  secondsPerItem: number
  /** Work in seconds that may wait; reports beyond it are rejected. */
  queueS: number
  seed: number
  /** The first so many edges ignore the interval. */
  deaf?: number
  /** Requests per report, one after the other. */
  parts?: number
  /** The cost is multiplied by this from half of an hour on. */
  later?: number
  /** When the simulation ends. */
  until?: number
  /** The results are about so many seconds before that. */
  last?: number
}

const SECONDS = 3_600
const JITTER = 0.1

/** The work that arrived per second, and the extremes of the intervals that edges were asked for. */
function simulate(simulated: Simulated) {
  const {
    edges,
    secondsPerItem,
    queueS,
    seed,
    deaf = 0,
    parts = 1,
    later = 1,
    until = SECONDS,
    last = 900,
  } = simulated
  let now = 0
  const pacing = createReportPacing({ now: () => now * 1000 })
  const random = randomFrom(seed)
  // All of them start at the same moment, as after an outage.
  const due = edges.map(() => 0)
  const partsLeft = edges.map(() => parts)
  const merging: { at: number; finish: () => void }[] = []
  const intervals: number[] = []
  let workS = 0
  while (now < until) {
    const edge = due.indexOf(Math.min(...due))
    const done = merging[0]
    if (done && done.at <= (due[edge] as number)) {
      merging.shift()
      now = done.at
      done.finish()
      continue
    }
    now = due[edge] as number
    due[edge] = Number.POSITIVE_INFINITY
    const items = (edges[edge] as number) / parts
    const costS = items * secondsPerItem * (now > SECONDS / 2 ? later : 1)
    const finish = pacing.start(`edge-${edge}`, items)
    const settle = (outcome: 'merged' | 'rejected') => {
      const interval = finish(outcome)
      const obeyed = edge < deaf ? REPORT_INTERVAL_S : interval
      partsLeft[edge] = ((partsLeft[edge] as number) + parts - 1) % parts
      due[edge] = partsLeft[edge] === 0 ? now + obeyed * (1 + JITTER * (2 * random() - 1)) : now
      if (now > until - last) intervals.push(interval)
    }
    const freeAt = merging.at(-1)?.at ?? now
    if (now > until - last) workS += costS
    if (freeAt - now > queueS) settle('rejected')
    else merging.push({ at: freeAt + costS, finish: () => settle('merged') })
  }
  return { load: workS / last, slowest: Math.max(...intervals), fastest: Math.min(...intervals) }
}

function randomFrom(seed: number): () => number {
  let state = seed
  return () => {
    state = (Math.imul(state, 1_664_525) + 1_013_904_223) >>> 0
    return state / 2 ** 32
  }
}

/** The interval at which merging takes exactly the share. */
const ideal = ({ edges, secondsPerItem }: Simulated) =>
  (edges.reduce((sum, items) => sum + items, 0) * secondsPerItem) / MERGE_SHARE

const fleet = fc.record({
  edges: fc.array(fc.integer({ min: 1, max: 5_000 }), { minLength: 1, maxLength: 40 }),
  secondsPerItem: fc.double({ min: 1e-5, max: 3e-3, noNaN: true }),
  queueS: fc.integer({ min: 1, max: 15 }),
  seed: fc.nat(),
})
const overloaded = fleet.filter((one) => ideal(one) > 10 && ideal(one) < 250)
const runs = { numRuns: 25 }

test('with edges that obey, merging settles below its share, and the interval varies by little', () => {
  fc.assert(
    fc.property(overloaded, (simulated) => {
      const { load, fastest, slowest } = simulate(simulated)
      assert.ok(load < 1.05 * MERGE_SHARE, `load ${load}`)
      assert.ok(load > 0.6 * MERGE_SHARE, `edges wait longer than needed, load ${load}`)
      // Below 2 with ten edges or more; a few whose reports take seconds each vary it more.
      assert.ok(slowest / fastest < (simulated.edges.length >= 10 ? 2 : 3), `${fastest} to ${slowest} s`)
    }),
    runs,
  )
})

test('a node that keeps up asks for the default interval', () => {
  fc.assert(
    fc.property(
      fleet.filter((one) => ideal(one) < 2),
      (simulated) => {
        const { fastest, slowest } = simulate(simulated)
        assert.deepEqual([fastest, slowest], [REPORT_INTERVAL_S, REPORT_INTERVAL_S])
      },
    ),
    runs,
  )
})

test('a report that is sent in parts counts as one', () => {
  const fleet = { edges: Array.from({ length: 20 }, () => 9_000), secondsPerItem: 1e-4, queueS: 5, seed: 3 }
  const { load, fastest, slowest } = simulate({ ...fleet, parts: 3 })
  assert.ok(load < 1.1 * MERGE_SHARE, `load ${load}`)
  assert.ok(fastest > 0.8 * ideal(fleet) && slowest < 1.5 * ideal(fleet), `${fastest} to ${slowest} s`)
})

test('edges that ignore the interval do not make the others wait longer than if all obeyed', () => {
  const deafFleet = fc.record({
    others: fc.array(fc.integer({ min: 500, max: 1_500 }), { minLength: 10, maxLength: 30 }),
    deaf: fc.integer({ min: 1, max: 5 }),
    /** Of the time, that merging the reports of deaf edges takes: some, or alone more than the share. */
    deafShare: fc.double({ min: 0.1, max: 0.8, noNaN: true }),
    seed: fc.nat(),
  })
  fc.assert(
    fc.property(deafFleet, ({ others, deaf, deafShare, seed }) => {
      const secondsPerItem = 5e-4
      const items = Math.ceil((deafShare * REPORT_INTERVAL_S) / secondsPerItem / deaf)
      const fleet = { edges: [...Array(deaf).fill(items), ...others], secondsPerItem, queueS: 5, seed }
      const { load, slowest } = simulate({ ...fleet, deaf })
      assert.ok(slowest < 2 * ideal(fleet), `${slowest} s instead of ${ideal(fleet)}`)
      assert.ok(load < 1.1 * (MERGE_SHARE + deafShare), `load ${load}`)
    }),
    runs,
  )
})

test('twenty times too much is below the capacity within two minutes, and the interval falls slowly', () => {
  const fleet = { edges: Array.from({ length: 400 }, () => 500), secondsPerItem: 5e-4, queueS: 5, seed: 7 }
  const { load } = simulate({ ...fleet, until: 120, last: 20 })
  assert.ok(load < 1, `load ${load}`)
  const after = (seconds: number) =>
    simulate({ ...fleet, later: 1e-3, until: SECONDS / 2 + seconds, last: 10 })
  const minute = after(60)
  assert.ok(minute.fastest > ideal(fleet) / 2, `${minute.fastest}`)
  assert.equal(after(900).slowest, REPORT_INTERVAL_S)
})

test('the interval is a whole number within its limits, whatever happens', () => {
  const step = fc.record({
    passedS: fc.double({ min: -10, max: 10_000, noNaN: true }),
    edge: fc.nat(5),
    items: fc.nat(5_000),
    finishes: fc.boolean(),
  })
  fc.assert(
    fc.property(fc.array(step, { maxLength: 60 }), (steps) => {
      let now = 0
      const pacing = createReportPacing({ now: () => now * 1000 })
      const open: ReturnType<typeof pacing.start>[] = []
      for (const { passedS, edge, items, finishes } of steps) {
        now += passedS
        const finish = finishes ? open.shift() : undefined
        const interval = finish?.(items % 2 === 0 ? 'merged' : 'rejected') ?? REPORT_INTERVAL_S
        assert.ok(Number.isInteger(interval), `${interval}`)
        assert.ok(interval >= REPORT_INTERVAL_S && interval <= REPORT_INTERVAL_MAX_S, `${interval}`)
        open.push(pacing.start(`edge-${edge}`, items))
      }
    }),
  )
})

test('the operator learns when edges are slowed down, and when they no longer are', () => {
  let now = 0
  const events: string[] = []
  const pacing = createReportPacing({
    now: () => now * 1000,
    onSlowed: () => events.push('slowed'),
    onRecovered: () => events.push('recovered'),
  })
  for (let report = 0; report < 200; report++) {
    const finish = pacing.start('edge', 10)
    now += report < 20 ? 20 : 0.01
    finish('merged')
    now += 10
  }
  assert.deepEqual(events, ['slowed', 'recovered'])
})

test('a temporary failure asks the edge to wait at least as long as a success would', async () => {
  const pacing = { start: () => () => 40 }
  const report = { counters: [] }
  const failing = (fault: Fault) => paceReport(pacing, 'edge', report, () => Promise.reject(fault))
  assert.deepEqual(await paceReport(pacing, 'edge', report, async () => ({ accepted: 0 })), {
    accepted: 0,
    nextReportInS: 40,
  })
  const waits = (seconds: number) => ({ code: 'unavailable', message: 'full', retryAfterS: seconds })
  await assert.rejects(failing(new Fault('unavailable', { message: 'full', retryAfterS: 1 })), waits(40))
  await assert.rejects(failing(new Fault('unavailable', { message: 'full', retryAfterS: 60 })), waits(60))
  await assert.rejects(failing(new Fault('invalid_request')), {
    code: 'invalid_request',
    retryAfterS: undefined,
  })
})
