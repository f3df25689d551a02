// The checker can fail: nodes that trust their memory for ever break the one promise that leases are for, and no other.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { deployOnPostgres } from './deployments.ts'
import type { Lane } from './injection.ts'
import { playAndJudge } from './run.ts'

const SECONDS = 12

/** It takes a key that is asked for at the right moment; on a busy machine there may be none. */
const ATTEMPTS = 3

test('nodes that never doubt their memory accept revoked keys, and the checker tells', async (t) => {
  let rules: string[] = []
  for (let attempt = 1; attempt <= ATTEMPTS && rules.length === 0; attempt++) rules = await rulesBroken(t)
  assert.deepEqual(rules, ['stale accept'])
})

async function rulesBroken(t: TestContext): Promise<string[]> {
  const careless = new URL('broken-lease.ts', import.meta.url)
  const deployment = await deployOnPostgres(t, 3, { NODE_OPTIONS: `--import=${careless}` })
  // A node that only stands still has luck at times: what it hears when it thaws may come before what it is asked.
  const outliveLeases = ['wire held', 'wire held and node frozen']
  const mischief = deployment.lanes
    .flatMap((lane) => lane.mischief)
    .filter(({ kind }) => outliveLeases.includes(kind))
  const lanes: Lane[] = [{ mischief, pause: [500, 1_500] }]
  const { violations } = await playAndJudge(t, { ...deployment, lanes }, { seconds: SECONDS })
  return [...new Set(violations.map(({ rule }) => rule))]
}
