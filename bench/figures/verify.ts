// Key verification by edges.
import type { Figure } from '../figure.ts'
import type { Fixtures } from '../fixtures.ts'
import { compare, type Measured } from '../rounds.ts'
import { edgeVerifying, verifyEach, verifyKeys, verifyRequest } from '../scenarios.ts'
import { keysPlan } from '../seed/catalog.ts'
import { startBare } from './workspace.ts'

const KEYS = 100_000
const MANY_KEYS = 1_000_000
const FEW_KEYS = 1_000

/** Adit with all presented keys in its cache, as after the first minutes of a node. */
async function startWarm(fixtures: Fixtures, keys: number) {
  const ours = await fixtures.adit(await fixtures.sqlite(`keys-${keys}`, keysPlan(keys)))
  const what = edgeVerifying(fixtures, keys)
  const { perSecond } = await verifyEach(fixtures, ours, what)
  return { ours, what, note: `${Math.round(perSecond)}/s with an empty cache` }
}

async function againstBare(fixtures: Fixtures): Promise<Measured> {
  const { ours, what, note } = await startWarm(fixtures, KEYS)
  const bare = await startBare(fixtures, ours, verifyRequest(fixtures, what))
  const measured = await compare(verifyKeys(fixtures, ours, what), verifyKeys(fixtures, bare, what))
  return { ...measured, note }
}

async function againstFew(fixtures: Fixtures): Promise<Measured> {
  const scenario = async (keys: number) => {
    const { ours, what } = await startWarm(fixtures, keys)
    return verifyKeys(fixtures, ours, what)
  }
  return compare(await scenario(MANY_KEYS), await scenario(FEW_KEYS))
}

export const verify: Figure[] = [
  {
    name: 'verify_vs_bare',
    ours: 'verification, 100,000 keys, SQLite',
    other: 'a bare node:http server that reads the body and sends the same bytes',
    unit: 'requests/s',
    target: { atLeast: 0.8 },
    measure: againstBare,
  },
  {
    name: 'verify_flat',
    ours: 'verification, 1,000,000 keys in 100,000 workspaces, of which 20,000 are presented',
    other: '1,000 keys in 100 workspaces',
    unit: 'requests/s',
    target: { atLeast: 0.9 },
    measure: againstFew,
  },
]
