// Nodes are killed while they create keys and deliver the events, to endpoints that fail, reset, respond
// slowly or hang. Every event of a committed change arrives, once by its id, in the order of the changes.
import assert from 'node:assert/strict'
import { setTimeout as delay } from 'node:timers/promises'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import type { Engine } from '../../support/databases/create.ts'
import { type Respond, responses, startReceiver } from '../../support/events/webhook-receiver.ts'
import { addEndpoint, deliveriesOf, makeDue, TEST_SECRET } from '../../support/events/webhooks.ts'
import { startServing } from '../../support/processes/process.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const NODES = 2
const WAIT_MAX_MS = 300_000
const PAUSE_MS = 20

interface DeliveriesOptions {
  engine: Engine
  kills: number
  /** Between two kills, this many keys are created. */
  keysPerKill: number
  /** Endpoints hang too, and retries and the claims of killed nodes take the time they take. */
  isLong: boolean
}

export async function assertDeliveries(t: Test, { engine, kills, keysPerKill, isLong }: DeliveriesOptions) {
  const { services, database } = await openTestServices(t, engine)
  const random = createRandom(process.env.FAULTS_SEED ?? `${engine} webhooks`)
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme', provisioned: true })
  const { token } = await createKey({ ...services, actor: operator, workspaceId }, { label: 'writer' })
  const slow: Respond = (response) => delay(random.between(0, 200)).then(() => responses.ok(response))
  const failures: Respond[] = [responses.failure, responses.reset, ...(isLong ? [responses.hang] : [])]
  // Fewer in the long form, where each holds up its endpoint for seconds.
  const failureRate = isLong ? 0.06 : 0.3
  const respond: Respond = (response, received) =>
    random.pick(random.chance(failureRate) ? failures : [responses.ok, slow])(response, received)
  const endpoints = await Promise.all(
    Array.from({ length: 3 }, async () => {
      const receiver = await startReceiver(t, respond)
      receiver.secret = TEST_SECRET
      const events = ',key.created,'
      return { receiver, id: await addEndpoint(services, workspaceId, { url: receiver.url, events }) }
    }),
  )
  const env = {
    ADIT_DATABASE_URL: database,
    ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8',
    ADIT_KEYS_PER_WORKSPACE: '1000000',
    ADIT_LOG_LEVEL: 'silent',
  }
  const nodes = await Promise.all(Array.from({ length: NODES }, () => startServing(t, env)))
  /** Keys of one round are created at the same time, so their events may have any order. */
  let round = 0
  const write = () => {
    const { api } = random.pick(nodes)
    return fetch(`${api}/tokens`, {
      method: 'POST',
      headers: { authorization: `Bearer ${token}`, 'content-type': 'application/json' },
      body: JSON.stringify({ label: `round ${round}` }),
    }).then(
      (response) => response.arrayBuffer(),
      () => delay(PAUSE_MS),
    )
  }
  for (let kill = 0; kill < kills; kill++) {
    for (let count = 0; count < keysPerKill; count++, round++) await write()
    const index = random.whole(0, NODES)
    const writing = [write(), write()]
    nodes[index]?.child.kill('SIGKILL')
    await Promise.all(writing)
    round += 1
    nodes[index] = await startServing(t, env)
    if (!isLong) await makeDue(services, { withClaims: true })
  }
  const keys = await services.store.db
    .selectFrom('api_keys')
    .select('id')
    .where('label', '<>', 'writer')
    .execute()
  const committed = keys.map(({ id }) => id).sort()
  assert.ok(committed.length > kills * keysPerKill * 0.5, 'too few keys were created')
  await until(
    'all events arrive',
    async () => {
      if (!isLong) await makeDue(services)
      else await delay(500)
      return endpoints.every(({ receiver }) => receiver.unique().length >= committed.length)
    },
    WAIT_MAX_MS,
  )
  for (const { receiver, id } of endpoints) {
    const arrived = receiver.unique().map(({ body }) => body.data.key.id as string)
    assert.deepEqual(arrived.toSorted(), committed)
    const rounds = receiver.unique().map(({ body }) => Number(body.data.key.label.slice('round '.length)))
    assert.deepEqual(
      rounds,
      rounds.toSorted((a, b) => a - b),
    )
    const queued = (await deliveriesOf(services, id)).map(({ body }) => body.data.key.id)
    // The log keeps the last ones only.
    assert.deepEqual(arrived.slice(-queued.length), queued)
    assert.equal(receiver.rejected, 0)
  }
  return { events: committed.length, requests: endpoints.map(({ receiver }) => receiver.received.length) }
}
