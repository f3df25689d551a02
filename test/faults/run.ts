// Runs a scenario and checks its history.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import type { TestContext } from 'node:test'
import { createRandom } from '../support/random.ts'
import { check, checkVerdicts } from './checker/check.ts'
import type { Attempt } from './checker/history.ts'
import { summarize } from './checker/summary.ts'
import type { Deployment } from './deployments.ts'
import { type FollowersOptions, runFollowers } from './followers.ts'
import { countRevocations, hasEnoughRevocations, hasRestored } from './scenario/extension.ts'
import { runScenario, type ScenarioOptions } from './scenario/run.ts'
import { runTunnels } from './tunnels.ts'

type Options = Omit<ScenarioOptions, 'seed'>

const seedOf = (t: TestContext): string => {
  const seed = process.env.FAULTS_SEED ?? String(randomInt(2 ** 32))
  t.diagnostic(`FAULTS_SEED=${seed}`)
  return seed
}

/** FAULTS_SEED repeats the random choices of an earlier run. */
export async function runAndCheck(t: TestContext, deployment: Deployment, options: Options) {
  const history = await runScenario(t, deployment, { seed: seedOf(t), ...options })
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
  assertRevocations(history.attempts, options.seconds)
  assert.ok(hasRestored(history.attempts), 'no workspace was archived and restored')
  assert.ok(history.injected.length > 0, 'no fault was injected')
}

export async function assertFollowers(
  t: TestContext,
  options: Omit<FollowersOptions, 'random'>,
): Promise<void> {
  const history = await runFollowers(t, { ...options, random: createRandom(seedOf(t)) })
  const { attempts, faults, lostAcknowledgments } = history
  const revoked = countRevocations(attempts)
  t.diagnostic(
    `${options.followers} followers: ${attempts.length - revoked} verifications, ${revoked} revocations, ` +
      `${JSON.stringify(faults)}, ${lostAcknowledgments} lost acknowledgments`,
  )
  assert.deepEqual(checkVerdicts(history).slice(0, 20), [])
  assertRevocations(attempts, options.seconds)
  assert.ok(faults.stall > 0 && lostAcknowledgments > 0, 'no link stalled, or no acknowledgment was lost')
}

function assertRevocations(attempts: readonly Attempt[], seconds: number): void {
  const message = `only ${countRevocations(attempts)} revocations were acknowledged`
  assert.ok(hasEnoughRevocations(attempts, seconds), message)
}

/** Keys that visitors use at edges, until after their revocation. */
export async function assertNoTraffic(
  t: TestContext,
  deployment: Deployment,
  { seconds }: { seconds: number },
): Promise<void> {
  const history = await runTunnels(t, deployment, { seconds, random: createRandom(seedOf(t)) })
  const { carried, injected, revocations, violations } = history
  const slowest = Math.max(...revocations.map(({ tookMs }) => tookMs))
  const quick = revocations.filter(({ tookMs }) => tookMs < 1_000).length
  t.diagnostic(
    `${carried.length} carried, ${revocations.length} revocations, ${quick} of them within a second, the ` +
      `slowest in ${Math.round(slowest)} ms; ${injected.map(({ kind }) => kind).join(', ')}`,
  )
  assert.deepEqual(
    violations.slice(0, 20).map(({ what }) => what),
    [],
  )
  const wasUsed = ({ keyId, atMs, tookMs }: (typeof revocations)[number]) =>
    carried.some((each) => each.keyId === keyId && each.receivedMs > atMs - tookMs - 1_000)
  const used = revocations.filter(wasUsed).length
  assert.ok(used >= seconds / 10, `only ${used} keys carried traffic right before their revocation`)
  assert.ok(injected.length > 0, 'no fault was injected')
}
