// The checker can fail: nodes that trust their memory for ever break the one promise that leases are for, and no other.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deployOnPostgres } from './deployments.ts'
import { playThrough } from './played.ts'
import type { Lane } from './troubles.ts'

const SECONDS = 10

test('nodes that never doubt their memory accept revoked keys, and the checker tells', async (t) => {
  const careless = new URL('careless.ts', import.meta.url)
  const deployment = await deployOnPostgres(t, 3, { NODE_OPTIONS: `--import=${careless}` })
  const longerThanLeases = ['freeze', 'wire held', 'wire held and node frozen']
  const mischief = deployment.lanes
    .flatMap((lane) => lane.mischief)
    .filter(({ kind }) => longerThanLeases.includes(kind))
  const lanes: Lane[] = [{ mischief, pause: [500, 1_500] }]
  const { violations } = await playThrough(t, { ...deployment, lanes }, { seconds: SECONDS })
  assert.deepEqual([...new Set(violations.map(({ rule }) => rule))], ['stale accept'])
})
