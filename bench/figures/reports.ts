// Usage reports: compared with plain upserts of the same rows, and with few rows in the database.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { type Baseline, cpuSeconds } from '../processes.ts'
import { compare, type Measured, roundSeconds, type Scenario } from '../rounds.ts'
import { reporting } from '../scenarios.ts'
import { countersPlan, keysPlan } from '../seed/catalog.ts'

type Engine = 'sqlite' | 'postgres'

/** Workspaces with about 10 thousand counter rows each. */
const MANY_HISTORIES = 990
const FEW_HISTORIES = 1

/** Plain upserts, by a process that does nothing else. */
const upsertRows =
  (baseline: Baseline): Scenario =>
  async (round) => {
    const cpuBefore = cpuSeconds(baseline.pid) ?? Number.NaN
    const seconds = roundSeconds(round)
    const { perSecond } = await baseline.request<{ perSecond: number }>({ seconds })
    return { value: perSecond, busy: ((cpuSeconds(baseline.pid) ?? Number.NaN) - cpuBefore) / seconds }
  }

async function againstLimit(fixtures: Fixtures, engine: Engine): Promise<Measured> {
  const database = await (engine === 'sqlite'
    ? fixtures.sqlite('counters-1', countersPlan(FEW_HISTORIES))
    : fixtures.postgres('main', keysPlan(100_000)))
  const ours = await fixtures.adit(database)
  // A separate file, so that neither waits for the locks of the other.
  const other = engine === 'sqlite' ? `sqlite:${fixtures.folder}/upserts.db` : database
  const baseline = await fixtures.baseline('upserts', { database: other })
  return compare(await reporting(fixtures, ours), upsertRows(baseline))
}

async function manyRows(fixtures: Fixtures): Promise<Measured> {
  const scenario = async (histories: number) => {
    const database = await fixtures.sqlite(`counters-${histories}`, countersPlan(histories))
    return reporting(fixtures, await fixtures.adit(database))
  }
  return compare(await scenario(MANY_HISTORIES), await scenario(FEW_HISTORIES))
}

const engineNames = { sqlite: 'SQLite', postgres: 'PostgreSQL' }

export const reports: Figure[] = [
  ...(['sqlite', 'postgres'] as const).map(
    (engine): Figure => ({
      name: `report_limit_${engine}`,
      ours: `counters accepted in reports of 1,000, committed, ${engineNames[engine]}`,
      other: 'the same rows by one upsert of 1,000, the limit of the database',
      unit: 'counters/s',
      target: { atLeast: 0.5 },
      measure: (fixtures) => againstLimit(fixtures, engine),
    }),
  ),
  {
    name: 'report_flat',
    ours: 'reports of 1,000 counters, 10 million counter rows in the database',
    other: '10 thousand rows',
    unit: 'counters/s',
    target: { atLeast: 0.85 },
    measure: manyRows,
  },
]
