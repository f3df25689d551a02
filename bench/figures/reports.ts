// Usage reports: compared with plain upserts of the same rows, with few edges, and on Citus.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { type Baseline, cpuSecondsOf } from '../processes.ts'
import { compare, type Measured, type Scenario, secondsOf } from '../rounds.ts'
import { reporting } from '../scenarios.ts'
import { countersPlan, edgesPlan, keysPlan } from '../seed/catalog.ts'
import * as plans from '../seed/plan.ts'

type Engine = 'sqlite' | 'postgres'

/** As many as Adit's pool has. */
const CONNECTIONS = 10
const MANY_EDGES = 1_000
const FEW_EDGES = 10

/** Plain upserts, by a process that does nothing else. */
const upserting =
  (baseline: Baseline): Scenario =>
  async (round) => {
    const cpuBefore = cpuSecondsOf(baseline.pid) ?? Number.NaN
    const seconds = secondsOf(round)
    const { perSecond } = await baseline.request<{ perSecond: number }>({ seconds })
    return { value: perSecond, busy: ((cpuSecondsOf(baseline.pid) ?? Number.NaN) - cpuBefore) / seconds }
  }

async function againstUpserts(
  fixtures: Fixtures,
  engine: Engine,
  upserts: { rows: number; connections: number },
) {
  const database = await (engine === 'sqlite'
    ? fixtures.sqlite('counters-1', countersPlan(1))
    : fixtures.postgres('main', keysPlan(100_000)))
  const ours = await fixtures.adit(database)
  // A separate file, so that neither waits for the locks of the other.
  const other = engine === 'sqlite' ? `sqlite:${fixtures.folder}/upserts.db` : database
  const baseline = await fixtures.baseline('upserts', { database: other, ...upserts })
  return compare(await reporting(fixtures, ours), upserting(baseline))
}

async function againstSingle(fixtures: Fixtures, engine: Engine): Promise<Measured> {
  const measured = await againstUpserts(fixtures, engine, { rows: 1, connections: CONNECTIONS })
  return {
    ...measured,
    note: `one row after the other, each took ${Math.round(1e6 / measured.other)} µs with its commit`,
  }
}

const againstLimit = (fixtures: Fixtures, engine: Engine) =>
  againstUpserts(fixtures, engine, { rows: plans.REPORTED.count, connections: 1 })

async function manyEdges(fixtures: Fixtures): Promise<Measured> {
  const measure = async (engine: Engine) => {
    const scenario = async (edges: number) => {
      const served = await fixtures.adit(await fixtures[engine](`edges_${edges}`, edgesPlan(edges)))
      return reporting(fixtures, served, plans.SHARED)
    }
    return compare(await scenario(MANY_EDGES), await scenario(FEW_EDGES))
  }
  const measured = await measure('sqlite')
  const { ratio } = await measure('postgres')
  return { ...measured, note: `${ratio.toFixed(2)} on PostgreSQL` }
}

const { ADIT_CITUS_URL } = process.env

async function onCitus(fixtures: Fixtures): Promise<Measured> {
  const { distributed, local } = await fixtures.citus(ADIT_CITUS_URL as string, countersPlan(0))
  const scenario = async (database: string) => reporting(fixtures, await fixtures.adit(database))
  return compare(await scenario(distributed), await scenario(local))
}

const engineNames = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

export const reports: Figure[] = [
  ...(['sqlite', 'postgres'] as const).flatMap((engine): Figure[] => [
    {
      name: `report_${engine}`,
      ours: `counters accepted in reports of 1,000, committed, ${engineNames[engine]}`,
      other: 'the same rows as single upserts, a commit each',
      unit: 'counters/s',
      target: { atLeast: 10 },
      measure: (fixtures) => againstSingle(fixtures, engine),
    },
    {
      name: `report_limit_${engine}`,
      ours: `counters accepted in reports of 1,000, committed, ${engineNames[engine]}`,
      other: 'the same rows by one upsert of 1,000, the limit of the database',
      unit: 'counters/s',
      target: { atLeast: 0.5 },
      measure: (fixtures) => againstLimit(fixtures, engine),
    },
  ]),
  {
    name: 'report_edges_flat',
    ours: 'reports of 100 counters, 1,000 other edges have reported the same workspaces and days, SQLite',
    other: '10 other edges',
    unit: 'counters/s',
    target: { atLeast: 0.85 },
    measure: manyEdges,
  },
  {
    name: 'report_citus',
    ours: 'counters accepted in reports of 1,000, committed, Citus',
    other: 'tables on the coordinator only',
    unit: 'counters/s',
    target: { atLeast: 0.5 },
    skipReason: () =>
      ADIT_CITUS_URL ? undefined : 'ADIT_CITUS_URL is not set to a database on a Citus coordinator',
    measure: onCitus,
  },
]
