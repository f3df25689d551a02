// Requests that read PostgreSQL, compared with one prepared SELECT behind bare node:http.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import type { Served } from '../processes.ts'
import { compare, type Measured, roundSeconds, type Scenario, timing } from '../rounds.ts'
import { edgeVerifying, getRequest, ownKey, repeatGet, verifyMany } from '../scenarios.ts'
import { alone, keysPlan } from '../seed/catalog.ts'
import * as plans from '../seed/plan.ts'
import { seedDays } from '../seed/postgres.ts'

const DAYS = 365
const KEYS = 100_000
/** About what is verified in a second. The keys are enough for rounds of two seconds. */
const COLD_PER_SECOND = 7_000

const startSelect = (fixtures: Fixtures, url: string) =>
  fixtures.baseline('bare-select', {
    url,
    workspaceId: plans.workspaceId(1),
    from: plans.today() - (DAYS - 1) * plans.DAY_MS,
  })

async function readingUsage(fixtures: Fixtures): Promise<Measured> {
  const database = await fixtures.postgres('usage', alone)
  await seedDays(database, DAYS)
  const ours = await fixtures.adit(database)
  const other = await startSelect(fixtures, database)
  const spec = getRequest(`/api/v1/usage?days=${DAYS}`, ownKey(fixtures))
  return compare(await repeatGet(fixtures, ours, spec), await repeatGet(fixtures, other, spec))
}

/** Each key is presented once. */
function firstSightings(
  fixtures: Fixtures,
  served: Served,
  what: ReturnType<typeof edgeVerifying>,
): Scenario {
  let from = 0
  return async (round) => {
    const amount = timing.requests ?? Math.round(COLD_PER_SECOND * roundSeconds(round))
    if (from + amount > KEYS) throw new Error('no keys are left that were not presented; use shorter rounds')
    const loaded = await verifyMany(fixtures, served, { ...what, keys: KEYS }, amount, from)
    from += amount
    return { value: loaded.perSecond, busy: loaded.busy }
  }
}

async function verifyingCold(fixtures: Fixtures): Promise<Measured> {
  const database = await fixtures.postgres('main', keysPlan(KEYS))
  const ours = await fixtures.adit(database)
  const other = await startSelect(fixtures, database)
  const what = edgeVerifying(fixtures, KEYS)
  return compare(
    firstSightings(fixtures, ours, what),
    firstSightings(fixtures, other, { ...what, path: '/verify', headers: {} }),
  )
}

export const postgres: Figure[] = [
  {
    name: 'verify_cold_postgres',
    ours: 'verification of keys that come for the first time, PostgreSQL',
    other: 'one prepared, indexed SELECT for each, behind bare node:http',
    unit: 'requests/s',
    target: { atLeast: 1 },
    measure: verifyingCold,
  },
  {
    name: 'usage_postgres',
    ours: `GET /usage?days=${DAYS}, every day filled, PostgreSQL`,
    other: 'one prepared SELECT of the same rows, behind bare node:http',
    unit: 'requests/s',
    target: { atLeast: 0.8 },
    measure: readingUsage,
  },
]
