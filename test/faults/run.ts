// A scenario that is played and judged.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'
import { check } from './checker.ts'
import type { Deployment } from './deployments.ts'
import { isAcknowledged } from './history.ts'
import { play, type ScenarioOptions } from './scenario.ts'
import { summarize } from './summary.ts'

type Options = Omit<ScenarioOptions, 'seed'>

/** FAULTS_SEED repeats the choices of an earlier run. */
export async function playAndJudge(t: TestContext, deployment: Deployment, options: Options) {
  const seed = process.env.FAULTS_SEED ?? String(randomInt(2 ** 32))
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const history = await play(t, deployment, { seed, ...options })
  const violations = check(history)
  for (const line of summarize(history, violations)) t.diagnostic(line)
  return { history, violations }
}

export async function assertSound(t: TestContext, deployment: Deployment, options: Options): Promise<void> {
  const { history, violations } = await playAndJudge(t, deployment, options)
  const complaints = deployment.nodes.map((node) => `${node.name}: ${node.complaints}`)
  assert.deepEqual(violations.slice(0, 20), [], complaints.join('\n'))
  // A run in which nothing happened would prove nothing; on a busy machine it may not be much.
  const revoked = history.attempts.filter((attempt) => attempt.revokes && isAcknowledged(attempt)).length
  assert.ok(revoked >= options.seconds / 4, `only ${revoked} revocations were acknowledged`)
  assert.ok(history.troubles.length >= 1, 'nothing was done to anybody')
}
