// Proves that the checker can fail: without leases, nodes violate the guarantee that leases are for, and no
// other.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { deployOnPostgres } from './deployments.ts'
import type { FaultSchedule } from './injection.ts'
import { runAndCheck } from './run.ts'

const SECONDS = 6

/** It takes a probe at the right moment; on a busy machine there may be none. */
const ATTEMPTS = 6

test('nodes whose lease never expires accept revoked keys, and the checker detects it', async (t) => {
  let rules: string[] = []
  for (let attempt = 1; attempt <= ATTEMPTS && rules.length === 0; attempt++) rules = await violatedRules(t)
  assert.deepEqual(rules, ['stale accept'])
})

async function violatedRules(t: TestContext): Promise<string[]> {
  const patch = new URL('broken-lease.ts', import.meta.url)
  const deployment = await deployOnPostgres(t, 3, { NODE_OPTIONS: `--import=${patch}` })
  // Not a mere pause: the node may poll before it handles the requests that wait for it.
  const kinds = ['link stalled', 'link stalled and node paused']
  const types = deployment.schedules
    .flatMap((schedule) => schedule.types)
    .filter(({ kind }) => kinds.includes(kind))
  const schedules: FaultSchedule[] = [{ types, gap: [500, 1_500] }]
  const { violations } = await runAndCheck(t, { ...deployment, schedules }, { seconds: SECONDS })
  // A node that misses the restore of a workspace rejects its keys, which leases prevent too.
  const others = violations.filter(({ what }) => !what.endsWith('which must be accepted'))
  return [...new Set(others.map(({ rule }) => rule))]
}
