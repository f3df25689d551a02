// Runs a scenario and checks its history.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'
import { check } from './checker.ts'
import type { Deployment } from './deployments.ts'
import { isAcknowledged } from './history.ts'
import { runScenario, type ScenarioOptions } from './scenario.ts'
import { summarize } from './summary.ts'

type Options = Omit<ScenarioOptions, 'seed'>

/** FAULTS_SEED repeats the random choices of an earlier run. */
export async function runAndCheck(t: TestContext, deployment: Deployment, options: Options) {
  const seed = process.env.FAULTS_SEED ?? String(randomInt(2 ** 32))
  t.diagnostic(`FAULTS_SEED=${seed}`)
  const history = await runScenario(t, deployment, { seed, ...options })
  const violations = check(history)
  for (const line of summarize(history, violations)) t.diagnostic(line)
  return { history, violations }
}

export async function assertNoViolations(
  t: TestContext,
  deployment: Deployment,
  options: Options,
): Promise<void> {
  const { history, violations } = await runAndCheck(t, deployment, options)
  const errorLogs = deployment.nodes.map((node) => `${node.name}: ${node.errorLog}`)
  assert.deepEqual(violations.slice(0, 20), [], errorLogs.join('\n'))
  // A run without revocations or faults proves nothing. On a busy machine there may be few.
  const revoked = history.attempts.filter((attempt) => attempt.revokes && isAcknowledged(attempt)).length
  assert.ok(revoked >= options.seconds / 4, `only ${revoked} revocations were acknowledged`)
  assert.ok(history.injected.length >= 1, 'no fault was injected')
}
