// PostgreSQL failover: the primary dies, a standby with everything acknowledged is promoted, and the address
// of the database points to it from then on.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { populate, startClients } from '../../support/api/clients.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createCluster } from '../../support/databases/postgres.ts'
import { startRelay } from '../../support/network/relay.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

/** Also for requests that were waiting for the old primary: shorter than their own timeout. */
const RESPONSE_TIMEOUT_MS = 8_000

/** Two nodes under load, on a primary with a standby. */
async function startUnderLoad(t: TestContext) {
  const primary = await createCluster(['fsync=off'])
  atEnd(t, () => primary.remove())
  await primary.start()
  const secrets = await populate(`${primary.url}/postgres`)
  const standby = await primary.standby()
  const relay = await startRelay(t, primary.url)
  const database = new URL(`${primary.url}/postgres`)
  database.port = relay.port
  const env = { ADIT_DATABASE_URL: database.href, ADIT_LOG_LEVEL: 'silent' }
  const nodes = await Promise.all([startServing(t, env), startServing(t, env)])
  const urls = nodes.map((node) => node.url)
  const clients = startClients(urls, secrets)
  await clients.areRunning()
  // Fills the pool of each node with connections, most of them idle at the failover.
  await clients.assertServing()

  async function assertRecovered(back: number): Promise<void> {
    await clients.assertRecovered(t, back)
    assert.ok(clients.slowestMs < RESPONSE_TIMEOUT_MS, `a response took ${clients.slowestMs} ms`)
    await clients.assertExact(`${standby.url}/postgres`)
    for (const node of nodes) {
      assert.equal((await node.stop()).code, 0)
    }
  }
  return { primary, standby, relay, urls, clients, assertRecovered }
}

test('failover loses and duplicates nothing, and takes the nodes at most 2 s', async (t) => {
  const { primary, standby, relay, assertRecovered } = await startUnderLoad(t)
  await primary.stop('kill')
  await sleep(500)
  await standby.promote()
  relay.retarget(standby.url)
  await assertRecovered(performance.now())
})

test('failover takes at most 2 s also if connections to the old primary stay open', async (t) => {
  const { primary, standby, relay, assertRecovered } = await startUnderLoad(t)
  relay.blackhole()
  await primary.stop('kill')
  await standby.promote()
  relay.retarget(standby.url)
  await assertRecovered(performance.now())
})

test('a standby causes 503, its promotion ends that within 2 s, and no revoked key is accepted', async (t) => {
  const { primary, standby, relay, urls, clients, assertRecovered } = await startUnderLoad(t)
  relay.retarget(standby.url)
  await primary.stop('kill')
  await until('503', () => clients.unavailable.length > 0)
  await sleep(1_000)
  for (const url of urls) assert.equal((await fetch(`${url}/readyz`)).status, 503)
  const before = clients.ledger.created.size
  await sleep(1_000)
  assert.equal(clients.ledger.created.size, before, 'something was acknowledged that a standby cannot store')
  await standby.promote()
  await assertRecovered(performance.now())
})
