// Key verification by edges.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { compare } from '../rounds.ts'
import { edgeVerifying, verificationOf, verifying, verifyMany } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'
import { startBare } from './against-bare.ts'

const KEYS = 100_000

/** Adit with all presented keys in its cache, as after the first minutes of a node. */
export async function startWarm(fixtures: Fixtures, database: string, keys: number) {
  const ours = await fixtures.adit(database)
  const what = edgeVerifying(fixtures, keys)
  const { perSecond } = await verifyMany(fixtures, ours, what, what.keys)
  return { ours, what, firstTime: `${Math.round(perSecond)}/s with an empty cache` }
}

async function againstBare(fixtures: Fixtures) {
  const database = await fixtures.sqlite('keys-100000', keysPlan(KEYS))
  const { ours, what, firstTime } = await startWarm(fixtures, database, KEYS)
  const bare = await startBare(fixtures, ours, verificationOf(fixtures, what))
  const measured = await compare(verifying(fixtures, ours, what), verifying(fixtures, bare, what))
  return { ...measured, note: firstTime }
}

export const verify: Figure[] = [
  {
    name: 'verify_vs_bare',
    ours: 'verification, 100,000 keys, SQLite',
    other: 'a bare node:http server that reads the body and sends the same bytes',
    unit: 'requests/s',
    target: { atLeast: 0.75 },
    measure: againstBare,
  },
]
