// PostgreSQL moves to another machine: the primary dies, a standby that has everything acknowledged takes its place, and
// the address that the nodes know leads there from then on.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { atEnd } from '../support/cleanup.ts'
import { populate, startClients } from '../support/clients.ts'
import { createCluster } from '../support/postgres.ts'
import { startServing } from '../support/process.ts'
import { startRelay } from '../support/relay.ts'
import { until } from '../support/until.ts'

/** Also for requests that were waiting for an answer of the old primary: less than they would wait for by themselves. */
const ANSWERED_WITHIN_MS = 8_000

/** Two nodes and their clients, at work on a primary with a standby. */
async function begin(t: TestContext) {
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
  await clients.areAtWork()
  // So that each node holds as many connections as it may, most of them idle, when the change comes.
  await clients.assertServing()

  async function end(back: number): Promise<void> {
    await clients.assertRecovered(t, back)
    assert.ok(clients.slowestMs < ANSWERED_WITHIN_MS, `an answer took ${clients.slowestMs} ms`)
    await clients.assertExact(`${standby.url}/postgres`)
    for (const node of nodes) {
      node.child.kill('SIGTERM')
      assert.equal((await node.ended).code, 0)
    }
  }
  return { primary, standby, relay, urls, clients, end }
}

test('failover: nothing acknowledged is lost, nothing is done twice, and the nodes are back within 2 s', async (t) => {
  const { primary, standby, relay, end } = await begin(t)
  await primary.stop('kill')
  await sleep(500)
  await standby.promote()
  relay.lead(standby.url)
  await end(performance.now())
})

test('failover without closed connections to the old primary: service within 2 s too', async (t) => {
  const { primary, standby, relay, end } = await begin(t)
  relay.forget()
  await primary.stop('kill')
  await standby.promote()
  relay.lead(standby.url)
  await end(performance.now())
})

test('while the address resolves to a standby that is not promoted: 503, no revoked key is accepted, then service', async (t) => {
  const { primary, standby, relay, urls, clients, end } = await begin(t)
  relay.lead(standby.url)
  await primary.stop('kill')
  await until('503', () => clients.unavailable.length > 0)
  await sleep(1_000)
  for (const url of urls) assert.equal((await fetch(`${url}/readyz`)).status, 503)
  const before = clients.ledger.created.size
  await sleep(1_000)
  assert.equal(clients.ledger.created.size, before, 'something was acknowledged that a standby cannot have')
  await standby.promote()
  await end(performance.now())
})
