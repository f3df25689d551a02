// A scenario that is played and must be without fault.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'
import { check } from './checker.ts'
import type { Deployment } from './deployments.ts'
import { isAcknowledged } from './history.ts'
import { play, type ScenarioOptions } from './scenario.ts'
import { summarize } from './summary.ts'

/** FAULTS_SEED repeats the choices of an earlier run. */
const chooseSeed = () => process.env.FAULTS_SEED ?? String(randomInt(2 ** 32))

export async function playThrough(
  t: TestContext,
  deployment: Deployment,
  options: Omit<ScenarioOptions, 'seed'>,
) {
  const seed = chooseSeed()
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const history = await play(t, deployment, { seed, ...options })
  const violations = check(history)
  for (const line of summarize(history, violations)) t.diagnostic(line)
  return { history, violations }
}

export async function playAndCheck(
  t: TestContext,
  deployment: Deployment,
  seconds: number,
  onProgress?: ScenarioOptions['onProgress'],
): Promise<void> {
  const { history, violations } = await playThrough(t, deployment, {
    seconds,
    ...(onProgress && { onProgress }),
  })
  const complaints = deployment.nodes.map(({ name, complaints }) => `${name}: ${complaints}`)
  assert.deepEqual(violations.slice(0, 20), [], complaints.join('\n'))
  // A run in which nothing happened would prove nothing; on a busy machine it may not be much.
  const revoked = history.attempts.filter((attempt) => attempt.revokes && isAcknowledged(attempt))
  assert.ok(revoked.length >= seconds / 4, `only ${revoked.length} revocations were acknowledged`)
  assert.ok(history.troubles.length >= 1, 'nothing was done to anybody')
}
