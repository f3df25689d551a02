// Nodes are restarted one after the other behind a load balancer with health checks.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { populate, startClients } from '../../support/api/clients.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { freePort } from '../../support/processes/ports.ts'
import { startServing } from '../../support/processes/process.ts'
import { startBalancer } from '../../support/proxies/balancer.ts'
import { until } from '../../support/until.ts'

const NODES = 3

test('a rolling restart of every node under load fails no request', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const start = (port: number) =>
    startServing(t, {
      ADIT_DATABASE_URL: database,
      ADIT_PORT: String(port),
      ADIT_STOP_DELAY: '1',
      ADIT_LOG_LEVEL: 'silent',
    })
  const ports = await Promise.all(Array.from({ length: NODES }, freePort))
  const nodes = await Promise.all(ports.map(start))
  const balancer = await startBalancer(
    t,
    nodes.map(({ url }) => url),
  )
  const clients = startClients([balancer.url], secrets, 6)
  await clients.areRunning()
  for (const [index, node] of nodes.entries()) {
    assert.equal((await node.stop()).code, 0)
    await start(ports[index] as number)
    await until('it is ready again', () => balancer.readyCount() === NODES)
  }
  await sleep(500)
  await clients.finish()
  t.diagnostic(
    `${clients.responses} responses while ${NODES} nodes restarted, the slowest in ${clients.slowestMs} ms`,
  )
  assert.deepEqual([balancer.failures, clients.unavailable], [[], []])
  await clients.assertExact(database)
})
