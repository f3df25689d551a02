// A standby is promoted while the old primary keeps running: one node stays connected to the old primary,
// another connects to the new one. If nobody fences the old primary, a revoked key is rejected everywhere
// only with ADIT_FENCING=strict.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { LEASE_MS } from '../../src/server/verification/lease.ts'
import { atEnd } from '../support/cleanup.ts'
import { createCluster } from '../support/databases/postgres.ts'
import { startRelay } from '../support/network/relay.ts'
import { until } from '../support/until.ts'
import { checkVerdicts } from './checker/check.ts'
import { type Attempt, outcomeOf } from './checker/history.ts'
import { seed } from './deployments.ts'
import { startNode } from './nodes.ts'
import { createCalls, type Key, retryUntilResponse } from './scenario/calls.ts'
import { createWorkers } from './scenario/workers.ts'

const KEYS = 12
const PROBE_INTERVAL_MS = 40

async function deploy(t: TestContext, fencing: 'operator' | 'strict') {
  const primary = await createCluster(['fsync=off'])
  atEnd(t, () => primary.remove())
  await primary.start()
  const { adminKeys, edges } = await seed(`${primary.url}/postgres`)
  const standby = await primary.standby()
  const relay = await startRelay(t, primary.url)
  const relayed = new URL(`${primary.url}/postgres`)
  relayed.port = relay.port
  const env = { ADIT_FENCING: fencing }
  const oldNode = await startNode(t, 'old', { ...env, ADIT_DATABASE_URL: `${primary.url}/postgres` })
  const newNode = await startNode(t, 'new', { ...env, ADIT_DATABASE_URL: relayed.href })
  const attempts: Attempt[] = []
  const calls = createCalls(attempts, edges[0] as { token: string })
  const admin = adminKeys[0] as Key
  const create = async (name: string): Promise<Key> =>
    (await retryUntilResponse(() => calls.create(newNode, admin, name))).json
  return { standby, relay, oldNode, newNode, attempts, calls, admin, create }
}

/** Promotes the standby and revokes keys there, while clients present them to both nodes. */
async function splitBrain(t: TestContext, deployment: Awaited<ReturnType<typeof deploy>>) {
  const { standby, relay, oldNode, newNode, attempts, calls, admin, create } = deployment
  const keys: Key[] = []
  while (keys.length < KEYS) keys.push(await create(`key-${keys.length}`))
  let revoked = 0
  const clients = createWorkers()
  for (const node of [oldNode, newNode])
    for (const probe of Object.values(calls.probes))
      clients.loop(async (iteration) => {
        // Half of the keys are cached before the failover.
        const count = revoked === 0 ? KEYS / 2 : KEYS
        await probe(node, keys[iteration % count] as Key)
        await sleep(PROBE_INTERVAL_MS)
      })
  await sleep(1_000)
  await standby.promote()
  const promotedAt = performance.now()
  relay.retarget(standby.url)
  relay.cut()
  relay.mend()
  for (const { id } of keys) {
    const response = await retryUntilResponse(() => calls.revoke(newNode, admin, id))
    assert.ok([200, 404].includes(response.status), response.text)
    revoked += 1
  }
  await sleep(LEASE_MS)
  await clients.stop()
  const violations = checkVerdicts({ attempts, initialKeyIds: [admin.id], archivable: new Map() })
  const acceptedByOldNode = attempts.filter(
    (attempt) =>
      attempt.node === 'old' && attempt.startMs > promotedAt + LEASE_MS && outcomeOf(attempt) === 'accepted',
  )
  t.diagnostic(
    `${attempts.length} operations, ${revoked} revocations; once its lease had expired, the old node accepted ` +
      `${acceptedByOldNode.length}; ${violations.length} violations`,
  )
  return { violations, acceptedByOldNode }
}

test('strict fencing: a node of an old primary accepts no key, and a dead standby stops all nodes', async (t) => {
  const deployment = await deploy(t, 'strict')
  const { standby, oldNode, newNode, calls, create } = deployment
  const key = await create('first')
  const statuses = async () =>
    Promise.all([oldNode, newNode].map(async (node) => (await calls.probes.verify(node, key))?.status))
  await until('both nodes accept', async () => (await statuses()).every((status) => status === 200))
  await standby.stop('kill')
  await until('both nodes stop', async () => (await statuses()).every((status) => status === 503))
  assert.equal((await fetch(`${oldNode.url}/readyz`)).status, 503)
  await standby.start()
  await until('both nodes accept again', async () => (await statuses()).every((status) => status === 200))
  const { violations, acceptedByOldNode } = await splitBrain(t, deployment)
  assert.deepEqual(violations, [])
  assert.deepEqual(acceptedByOldNode, [])
})

test('fencing by the operator: a node of an unfenced old primary accepts revoked keys', async (t) => {
  const { violations, acceptedByOldNode } = await splitBrain(t, await deploy(t, 'operator'))
  assert.ok(acceptedByOldNode.length > 0)
  assert.ok(violations.length > 0, 'the checker found nothing')
  for (const { rule, what } of violations) {
    assert.equal(rule, 'stale accept')
    assert.match(what, / on old: /)
  }
})
