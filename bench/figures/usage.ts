// Usage: what a roll-up saves, and what taking reports in bundles does.
import type { Figure } from '../figure.ts'
import type { Workbench } from '../fixtures.ts'
import { cpuSecondsOf, type Peer, type Served } from '../processes.ts'
import { compare, type Side, secondsOf } from '../rounds.ts'
import { getting, ownKey, reading, reporting } from '../scenarios.ts'
import { countersPlan, keysPlan } from '../seed/catalog.ts'
import * as plans from '../seed/plan.ts'
import { seedEvents } from '../seed/postgres.ts'

const EVENTS = 10_000_000
const DAYS = 30
/** A query over all of them takes seconds and all processors: one at a time is as many as it can answer, in few rounds. */
const RAW_AT_ONCE = 1
const RAW_ROUNDS = 3

async function againstRaw(bench: Workbench) {
  const database = await bench.postgres('main', keysPlan(100_000))
  const workspaceId = plans.workspaceIdOf(1)
  bench.say('seeding ten million events')
  await seedEvents(database, { count: EVENTS, days: DAYS, workspaceId })
  const ours = await bench.adit(database)
  const from = plans.today() - (DAYS - 1) * plans.DAY_MS
  const raw = await bench.peer('group-by', { url: database, workspaceId, from })
  const ask = { method: 'GET', path: '/usage', headers: {} } as const
  const grouping: Side = async () => {
    const loaded = await bench.load.run(
      {
        url: raw.url,
        connections: RAW_AT_ONCE,
        draw: { kind: 'requests', requests: [ask], each: 'all' },
        until: { amount: RAW_AT_ONCE },
        expect: { starts: '{"series":[{"day":' },
      },
      raw.pid,
    )
    return { value: loaded.perSecond, busy: loaded.busy }
  }
  const side = await getting(bench, ours, reading(`/api/v1/usage?days=${DAYS}`, ownKey(bench)))
  return compare(side, grouping, RAW_ROUNDS)
}

/** Committing one by one, by a process that does nothing else. */
const singly =
  (peer: Peer): Side =>
  async (round) => {
    const cpuBefore = cpuSecondsOf(peer.pid) ?? Number.NaN
    const seconds = secondsOf(round)
    const { perSecond } = await peer.ask<{ perSecond: number }>({ seconds })
    return { value: perSecond, busy: ((cpuSecondsOf(peer.pid) ?? Number.NaN) - cpuBefore) / seconds }
  }

async function againstSingle(bench: Workbench, ours: Served, database: string) {
  const peer = await bench.peer('single-upserts', { database })
  const measured = await compare(reporting(bench, ours), singly(peer))
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
    // A file of its own, so that neither waits for the other's locks.
    measure: async (bench) => {
      const ours = await bench.adit(await bench.sqlite('counters-1', countersPlan(1)))
      return againstSingle(bench, ours, `sqlite:${bench.folder}/single.db`)
    },
  },
  {
    name: 'report_postgres',
    ours: 'counters accepted in reports of 1,000, committed, PostgreSQL',
    other: 'the same rows as single upserts, a commit each, over 10 connections',
    unit: 'counters/s',
    target: { atLeast: 10 },
    measure: async (bench) => {
      const database = await bench.postgres('main', keysPlan(100_000))
      return againstSingle(bench, await bench.adit(database), database)
    },
  },
]
