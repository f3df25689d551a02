// The cost of database size: the same requests to servers that differ only in the size of their database.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { alternate, type Measured, measuredOf, median, type Sample, type Scenario } from '../rounds.ts'
import { getting, ownKey, reading, reporting, verifying } from '../scenarios.ts'
import { alone, countersPlan, HISTORIES, KEY_COUNTS, keysPlan } from '../seed/catalog.ts'
import { countersOf, type Plan } from '../seed/plan.ts'
import { startWarm } from './verify.ts'

interface Sized {
  size: number
  scenario: Scenario
}

/** From the smallest to the largest; the figure is the largest to the smallest. */
async function growing(sized: Sized[]): Promise<Measured> {
  const samples = await alternate(sized.map(({ scenario }) => scenario))
  const smallest = samples[0] as Sample[]
  const series = sized.map(({ size }, index) => ({
    size,
    relative: median(
      (samples[index] as Sample[]).map(({ value }, round) => value / (smallest[round] as Sample).value),
    ),
  }))
  return { ...measuredOf(samples.at(-1) as Sample[], smallest), series }
}

/** One at a time: seeding uses all cores. */
async function each<T>(items: T[], make: (item: T) => Promise<Sized>): Promise<Sized[]> {
  const made: Sized[] = []
  for (const item of items) made.push(await make(item))
  return made
}

const keysDatabase = (fixtures: Fixtures, plan: Plan) =>
  fixtures.sqlite(plan.workspaces === 1 ? 'alone' : `keys-${plan.keys}`, plan)

const countersDatabase = (fixtures: Fixtures, histories: number) =>
  fixtures.sqlite(`counters-${histories}`, countersPlan(histories))

const verifyFlat = async (fixtures: Fixtures) =>
  growing(
    await each(KEY_COUNTS, async (keys) => {
      const { ours, what } = await startWarm(fixtures, await keysDatabase(fixtures, keysPlan(keys)), keys)
      return { size: keys, scenario: verifying(fixtures, ours, what) }
    }),
  )

const tokensFlat = async (fixtures: Fixtures) =>
  growing(
    await each([alone, ...KEY_COUNTS.slice(1).map(keysPlan)], async (plan) => {
      const ours = await fixtures.adit(await keysDatabase(fixtures, plan))
      // Not the whole body: lastUsedAt changes every few seconds.
      const starts = '{"tokens":[{"id":"tok_00000000000000000000000020",'
      return {
        size: plan.keys,
        scenario: await getting(fixtures, ours, reading('/api/v1/tokens', ownKey(fixtures)), { starts }),
      }
    }),
  )

const usageFlat = async (fixtures: Fixtures) =>
  growing(
    await each(HISTORIES, async (histories) => {
      const ours = await fixtures.adit(await countersDatabase(fixtures, histories))
      const scenario = await getting(fixtures, ours, reading('/api/v1/usage?days=365', ownKey(fixtures)))
      return { size: countersOf(countersPlan(histories)), scenario }
    }),
  )

const reportFlat = async (fixtures: Fixtures) =>
  growing(
    await each(HISTORIES, async (histories) => {
      const ours = await fixtures.adit(await countersDatabase(fixtures, histories))
      return { size: countersOf(countersPlan(histories)), scenario: await reporting(fixtures, ours) }
    }),
  )

export const flat: Figure[] = [
  {
    name: 'verify_flat',
    ours: 'verification, 1,000,000 keys in 100,000 workspaces, of which 20,000 are presented',
    other: '1,000 keys in 100 workspaces',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: verifyFlat,
  },
  {
    name: 'tokens_flat',
    ours: 'GET /tokens, 20 keys of one workspace among 100,000 workspaces',
    other: 'the same workspace alone',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: tokensFlat,
  },
  {
    name: 'usage_flat',
    ours: 'GET /usage?days=365, 10 million counter rows in the database',
    other: '10 thousand rows',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: usageFlat,
  },
  {
    name: 'report_flat',
    ours: 'reports of 1,000 counters, 10 million counter rows in the database',
    other: '10 thousand rows',
    unit: 'counters/s',
    target: { atLeast: 0.85 },
    measure: reportFlat,
  },
]
