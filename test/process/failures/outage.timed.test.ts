// PostgreSQL outages.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { populate, startClients } from '../../support/api/clients.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createCluster } from '../../support/databases/postgres.ts'
import { startServing } from '../../support/processes/process.ts'

/** After this time, a node has detected an outage and responds with 503 quickly. */
const DETECTED_WITHIN_MS = 1_500
const QUICK_MS = 2_000

/** A node under load, on a separate PostgreSQL. */
async function startUnderLoad(t: TestContext) {
  const cluster = await createCluster()
  atEnd(t, () => cluster.remove())
  await cluster.start()
  const database = `${cluster.url}/postgres`
  const secrets = await populate(database)
  const node = await startServing(t, { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' })
  const clients = startClients([node.url], secrets)
  await clients.areRunning()
  await clients.assertServing()
  const fetchStatus = async (path: string) => (await fetch(`${node.url}${path}`)).status
  return { cluster, database, node, clients, fetchStatus }
}

for (const how of ['fast', 'kill'] as const)
  test(`while PostgreSQL is stopped (${how}) 503 takes less than 2 s, and requests succeed within 2 s of its start`, async (t) => {
    const { cluster, database, node, clients, fetchStatus } = await startUnderLoad(t)
    await cluster.stop(how)
    const stoppedAt = performance.now()
    await sleep(DETECTED_WITHIN_MS)
    const readiness = await fetch(`${node.url}/readyz`)
    assert.equal(readiness.status, 503)
    assert.match(await readiness.text(), /The database cannot be reached/)
    assert.equal(await fetchStatus('/healthz'), 200)
    await sleep(1_000)
    await cluster.start()
    await clients.assertRecovered(t, performance.now())
    const later = clients.unavailable.filter(({ at }) => at > stoppedAt + DETECTED_WITHIN_MS)
    assert.ok(later.length > 0)
    for (const { what, ms } of later) assert.ok(ms < QUICK_MS, `${what} took ${ms} ms`)
    assert.equal(await fetchStatus('/readyz'), 200)
    await clients.assertExact(database)
    assert.equal((await node.stop()).code, 0)
  })

test('while PostgreSQL hangs requests get 503, succeed within 2 s afterwards, and a stop does not wait for it', async (t) => {
  const { cluster, database, node, clients, fetchStatus } = await startUnderLoad(t)
  cluster.freeze()
  await sleep(4_000)
  assert.equal(await fetchStatus('/readyz'), 503)
  assert.ok(clients.unavailable.length > 0)
  cluster.thaw()
  await clients.assertRecovered(t, performance.now())
  await clients.assertExact(database)
  cluster.freeze()
  const stoppedAt = performance.now()
  assert.equal((await node.stop()).code, 0)
  assert.ok(performance.now() - stoppedAt < 12_000, 'waited for a database that does not respond')
  cluster.thaw()
})
