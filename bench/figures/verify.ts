// Key verification by edges.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { compare } from '../rounds.ts'
import { edgeVerifying, PRESENTED, verifying, verifyMany } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

const KEYS = 100_000

/** Adit with all presented keys in its cache, as after the first minutes of a node. */
export async function startWarm(fixtures: Fixtures, database: string, keys: number) {
  const ours = await fixtures.adit(database)
  const what = edgeVerifying(fixtures, keys)
  const { perSecond } = await verifyMany(fixtures, ours, what, what.keys)
  return { ours, what, firstTime: `${Math.round(perSecond)}/s with an empty cache` }
}

async function againstBetterAuth(fixtures: Fixtures) {
  const { ours, what, firstTime } = await startWarm(
    fixtures,
    await fixtures.sqlite('keys-100000', keysPlan(KEYS)),
    KEYS,
  )
  fixtures.progress('seeding better-auth')
  const { file } = fixtures.keys()
  const other = await fixtures.baseline('better-auth', {
    path: `${fixtures.folder}/better-auth.db`,
    file,
    keys: KEYS,
  })
  const theirs = { path: '/verify', headers: {}, keys: PRESENTED }
  const measured = await compare(verifying(fixtures, ours, what), verifying(fixtures, other, theirs))
  return { ...measured, note: firstTime }
}

async function againstSelect(fixtures: Fixtures) {
  const database = await fixtures.postgres('main', keysPlan(KEYS))
  const { ours, what, firstTime } = await startWarm(fixtures, database, KEYS)
  const other = await fixtures.baseline('select', { url: database })
  const theirs = { path: '/verify', headers: {}, keys: PRESENTED }
  const measured = await compare(verifying(fixtures, ours, what), verifying(fixtures, other, theirs))
  return { ...measured, note: firstTime }
}

export const verify: Figure[] = [
  {
    name: 'verify_vs_betterauth',
    ours: 'verification, 100,000 keys, SQLite',
    other: 'verifyApiKey of better-auth with as many, SQLite, behind Fastify',
    unit: 'requests/s',
    target: { atLeast: 50 },
    measure: againstBetterAuth,
  },
  {
    name: 'verify_postgres',
    ours: 'verification, 100,000 keys, PostgreSQL',
    other: 'one prepared, indexed SELECT for each, behind Fastify',
    unit: 'requests/s',
    target: { atLeast: 3 },
    measure: againstSelect,
  },
]
