// Reads of usage: roll-ups compared with raw events.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { compare, type Scenario } from '../rounds.ts'
import { getting, ownKey, reading } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'
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

export const usage: Figure[] = [
  {
    name: 'usage_vs_raw',
    ours: 'GET /usage?days=30 at 10 million reported events, PostgreSQL',
    other: 'GROUP BY day over 10 million raw events, indexed',
    unit: 'requests/s',
    target: { atLeast: 100 },
    measure: againstRaw,
  },
]
