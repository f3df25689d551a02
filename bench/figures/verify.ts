// Verifying a key, which edges ask for before they open a tunnel.
import type { Figure } from '../figure.ts'
import type { Workbench } from '../fixtures.ts'
import { compare } from '../rounds.ts'
import { edgeVerifying, PRESENTED, verifying, verifyMany } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'

const KEYS = 100_000

/** Adit, once it has seen every key that will be presented, as a node has after its first minutes. */
export async function startWarm(bench: Workbench, database: string, keys: number) {
  const ours = await bench.adit(database)
  const what = edgeVerifying(bench, keys)
  const { perSecond } = await verifyMany(bench, ours, what, what.keys)
  return { ours, what, firstTime: `${Math.round(perSecond)}/s while every key came for the first time` }
}

async function againstBetterAuth(bench: Workbench) {
  const { ours, what, firstTime } = await startWarm(
    bench,
    await bench.sqlite('keys-100000', keysPlan(KEYS)),
    KEYS,
  )
  bench.say('seeding better-auth')
  const { file } = bench.minted()
  const other = await bench.peer('better-auth', { path: `${bench.folder}/better-auth.db`, file, keys: KEYS })
  const theirs = { path: '/verify', headers: {}, keys: PRESENTED }
  const measured = await compare(verifying(bench, ours, what), verifying(bench, other, theirs))
  return { ...measured, note: firstTime }
}

async function againstSelect(bench: Workbench) {
  const database = await bench.postgres('main', keysPlan(KEYS))
  const { ours, what, firstTime } = await startWarm(bench, database, KEYS)
  const other = await bench.peer('select', { url: database })
  const theirs = { path: '/verify', headers: {}, keys: PRESENTED }
  const measured = await compare(verifying(bench, ours, what), verifying(bench, other, theirs))
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
