// Usage: roll-ups compared with raw events, and batched reports compared with single upserts.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { type Baseline, cpuSecondsOf, type Served } from '../processes.ts'
import { compare, type Scenario, secondsOf } from '../rounds.ts'
import { getting, ownKey, reading, reporting } from '../scenarios.ts'
import { countersPlan, keysPlan } from '../seed/catalog.ts'
import * as plans from '../seed/plan.ts'
import { seedEvents } from '../seed/postgres.ts'

const EVENTS = 10_000_000
const DAYS = 30
/** A query over all of them takes seconds on all cores, so it is sent over one connection, in few rounds. */
const RAW_CONNECTIONS = 1
const RAW_ROUNDS = 3

async function againstRaw(fixtures: Fixtures) {
  const database = await fixtures.postgres('main', keysPlan(100_000))
  const workspaceId = plans.workspaceIdOf(1)
  fixtures.progress('seeding ten million events')
  await seedEvents(database, { count: EVENTS, days: DAYS, workspaceId })
  const ours = await fixtures.adit(database)
  const from = plans.today() - (DAYS - 1) * plans.DAY_MS
  const raw = await fixtures.baseline('group-by', { url: database, workspaceId, from })
  const spec = { method: 'GET', path: '/usage', headers: {} } as const
  const grouping: Scenario = async () => {
    const loaded = await fixtures.load.run(
      {
        url: raw.url,
        connections: RAW_CONNECTIONS,
        draw: { kind: 'requests', requests: [spec], each: 'all' },
        until: { amount: RAW_CONNECTIONS },
        expect: { starts: '{"series":[{"day":' },
      },
      raw.pid,
    )
    return { value: loaded.perSecond, busy: loaded.busy }
  }
  const scenario = await getting(fixtures, ours, reading(`/api/v1/usage?days=${DAYS}`, ownKey(fixtures)))
  return compare(scenario, grouping, RAW_ROUNDS)
}

/** One commit for each row, by a process that does nothing else. */
const singly =
  (baseline: Baseline): Scenario =>
  async (round) => {
    const cpuBefore = cpuSecondsOf(baseline.pid) ?? Number.NaN
    const seconds = secondsOf(round)
    const { perSecond } = await baseline.request<{ perSecond: number }>({ seconds })
    return { value: perSecond, busy: ((cpuSecondsOf(baseline.pid) ?? Number.NaN) - cpuBefore) / seconds }
  }

async function againstSingle(fixtures: Fixtures, ours: Served, database: string) {
  const baseline = await fixtures.baseline('single-upserts', { database })
  const measured = await compare(reporting(fixtures, ours), singly(baseline))
  return {
    ...measured,
    note: `one row after the other, each took ${Math.round(1e6 / measured.other)} µs with its commit`,
  }
}

export const usage: Figure[] = [
  {
    name: 'usage_vs_raw',
    ours: 'GET /usage?days=30 at 10 million reported events, PostgreSQL',
    other: 'GROUP BY day over 10 million raw events, indexed',
    unit: 'requests/s',
    target: { atLeast: 100 },
    measure: againstRaw,
  },
  {
    name: 'report_sqlite',
    ours: 'counters accepted in reports of 1,000, committed, SQLite',
    other: 'the same rows as single upserts, a commit each',
    unit: 'counters/s',
    target: { atLeast: 10 },
    // A separate file, so that neither waits for the locks of the other.
    measure: async (fixtures) => {
      const ours = await fixtures.adit(await fixtures.sqlite('counters-1', countersPlan(1)))
      return againstSingle(fixtures, ours, `sqlite:${fixtures.folder}/single.db`)
    },
  },
  {
    name: 'report_postgres',
    ours: 'counters accepted in reports of 1,000, committed, PostgreSQL',
    other: 'the same rows as single upserts, a commit each, over 10 connections',
    unit: 'counters/s',
    target: { atLeast: 10 },
    measure: async (fixtures) => {
      const database = await fixtures.postgres('main', keysPlan(100_000))
      return againstSingle(fixtures, await fixtures.adit(database), database)
    },
  },
]
