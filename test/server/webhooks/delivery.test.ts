// Deliveries arrive at least once and in order, whatever endpoints and nodes do.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../../src/lib/time.ts'
import { createIds } from '../../../src/server/domain/ids.ts'
import {
  PENDING_FAILING_MAX,
  PENDING_MAX,
  queueEvents,
  retryInMs,
} from '../../../src/server/domain/webhooks/queue.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { deleteEndpoint } from '../../../src/server/store/webhooks/endpoints.ts'
import { addMember } from '../../support/accounts/users.ts'
import { scrape } from '../../support/api/metrics.ts'
import { openTestServices, operator, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows, setRows } from '../../support/databases/rows.ts'
import { responses, startReceiver } from '../../support/events/webhook-receiver.ts'
import {
  addEndpoint,
  deliveriesOf,
  makeDue,
  readNumber,
  recordNumbered,
  startDelivery,
  TEST_SECRET,
} from '../../support/events/webhooks.ts'
import { pluck } from '../../support/pluck.ts'
import { createRandom } from '../../support/random.ts'
import { until } from '../../support/until.ts'

const COUNT = 8
const numbers = Array.from({ length: COUNT }, (_, index) => index)

for (const engine of engines) {
  // Without a server, which would send too.
  const opening = openTestServices({ after }, engine)
  let workspaces = 0
  const newWorkspace = async () => {
    const { services } = await opening
    return (await createWorkspace(services, operator, { slug: `ws-${++workspaces}` })).id
  }

  test(`${engine}: every event arrives in order, once by its id, from two nodes at endpoints that fail, reset or hang`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const random = createRandom(`${engine} ${process.env.WEBHOOKS_SEED ?? 1}`)
    const receivers = await Promise.all(
      [0, 1, 2].map(async () => {
        const receiver = await startReceiver(t, (response) =>
          random.pick([responses.ok, responses.ok, responses.failure, responses.reset, responses.hang])(
            response,
          ),
        )
        receiver.secret = TEST_SECRET
        await addEndpoint(services, workspaceId, { url: receiver.url })
        return receiver
      }),
    )
    for (let node = 0; node < 2; node++) startDelivery(t, services, { sendTimeoutMs: 100 })
    const recording = recordNumbered(services, workspaceId, 0, COUNT)
    await until('all have arrived', async () => {
      await makeDue(services)
      return receivers.every((receiver) => receiver.unique().length === COUNT)
    })
    await recording
    for (const receiver of receivers) {
      assert.deepEqual(receiver.unique().map(readNumber), numbers)
      assert.equal(receiver.rejected, 0)
    }
  })

  test(`${engine}: an endpoint that hangs delays neither another one nor the shutdown`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const hanging = await startReceiver(t, responses.hang)
    const other = await startReceiver(t)
    const id = await addEndpoint(services, workspaceId, { url: hanging.url })
    await addEndpoint(services, workspaceId, { url: other.url })
    const delivery = startDelivery(t, services)
    await recordNumbered(services, workspaceId, 0, 3)
    await until('the other one has all', () => other.received.length === 3)
    await until('a request hangs', () => hanging.received.length === 1)
    const began = performance.now()
    await delivery.stop()
    assert.ok(performance.now() - began < 3_000)
    hanging.respond = responses.ok
    // Released, so another node need not wait until the claim expires.
    startDelivery(t, services)
    await until('it has all', () => hanging.unique().length === 3)
    assert.deepEqual(hanging.unique().map(readNumber), [0, 1, 2])
    assert.equal((await deliveriesOf(services, id))[0]?.attempts, 1)
  })

  test(`${engine}: a node that lost its claim records nothing`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const open: (() => void)[] = []
    const receiver = await startReceiver(t, (response) => open.push(() => responses.ok(response)))
    const id = await addEndpoint(services, workspaceId, { url: receiver.url })
    await recordNumbered(services, workspaceId, 0, 2)
    // Both nodes send the first one: the second after the claim of the first has expired.
    startDelivery(t, services)
    await until('it is sent', () => open.length === 1)
    await makeDue(services, { withClaims: true })
    startDelivery(t, services)
    await until('it is sent again', () => open.length === 2)
    receiver.respond = responses.ok
    for (const respond of open) respond()
    await until('all have arrived', async () =>
      (await deliveriesOf(services, id)).every(({ delivered_at }) => delivered_at !== null),
    )
    assert.deepEqual(receiver.unique().map(readNumber), [0, 1])
    const [first] = await deliveriesOf(services, id)
    assert.equal(first?.attempts, 1)
  })

  test(`${engine}: an endpoint that hangs has one slot, however often its owner changes it`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    let open = 0
    const hanging = await startReceiver(t, (response) => {
      open += 1
      response.on('close', () => {
        open -= 1
      })
    })
    await addEndpoint(services, workspaceId, { url: hanging.url })
    await recordNumbered(services, workspaceId, 0, 1)
    startDelivery(t, services, { sendTimeoutMs: 14_000 })
    for (const count of [1, 2, 3]) {
      await until('it is sent', () => hanging.received.length === count)
      await makeDue(services, { withClaims: true })
    }
    // Before the requests time out.
    await until('the others are aborted', () => open === 1, 10_000)
  })

  test(`${engine}: an endpoint that fails for a day is disabled, and owners and admins are notified`, async (t) => {
    const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8', ADIT_METRICS_PORT: '0' }
    const server = await serve(t, { engine, env })
    const { services, workspace } = server
    const ann = await addMember(server, 'Ann', 'owner')
    const receiver = await startReceiver(t, responses.failure)
    const id = await addEndpoint(services, workspace.id, { url: receiver.url })
    await recordNumbered(services, workspace.id, 0, 2)
    await until('it fails', async () => (await deliveriesOf(services, id))[0]?.attempts === 1)
    const endpoint = async () => (await ann.get(`/workspaces/acme/webhooks`)).json.endpoints[0]
    assert.equal((await endpoint()).disabledAt, null)
    await setRows(services, 'webhook_endpoints', { failing_since: Date.now() - DAY_MS, due_at: 0 }, { id })
    await until('it is disabled', async () => (await endpoint()).disabledAt !== null)
    const { disabledReason, pending } = await endpoint()
    assert.deepEqual([disabledReason, pending], ['failing', 2])
    const metrics = await scrape(server.metricsUrl)
    assert.ok((metrics.get('adit_webhook_attempts_total{result="failed"}') ?? 0) >= 2)
    const { notices } = (await ann.get(`/workspaces/acme/notices`)).json
    assert.deepEqual(
      notices.map(({ kind, webhook }: { kind: string; webhook: { id: string } }) => [kind, webhook.id]),
      [['webhook-disabled', id]],
    )
    const { entries } = (await ann.get(`/workspaces/acme/audit?action=webhook.disabled`)).json
    assert.deepEqual(entries[0]?.actor.kind, 'server')
    // No event is recorded while it is disabled. Those that waited are sent when it is enabled.
    await recordNumbered(services, workspace.id, 9, 1)
    receiver.respond = responses.ok
    assert.equal((await ann.post(`/workspaces/acme/webhooks/${id}`, { enabled: true })).status, 200)
    await until('both arrive', async () => (await endpoint()).pending === 0)
    assert.deepEqual(receiver.unique().map(readNumber), [0, 1])
    assert.deepEqual((await ann.get(`/workspaces/acme/notices`)).json.notices, [])
  })

  test(`${engine}: an endpoint is disabled at once if it is gone, or when too many deliveries wait`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const gone = await startReceiver(t, (response) => response.writeHead(410).end())
    const failing_since = Date.now() - 2 * HOUR_MS
    const ids = [
      await addEndpoint(services, workspaceId, { url: gone.url }),
      await addEndpoint(services, workspaceId, { url: gone.url, last_position: PENDING_MAX }),
      await addEndpoint(services, workspaceId, { last_position: PENDING_FAILING_MAX, failing_since }),
    ]
    await recordNumbered(services, workspaceId, 0, 1)
    startDelivery(t, services)
    await until('all are disabled and nothing is due', async () => {
      const rows = await readRows(services, 'webhook_endpoints', { workspace_id: workspaceId }, 'id')
      return (
        pluck(rows, 'disabled_reason', 'due_at', 'last_position').join(' ') ===
        `gone,,1 backlog,,${PENDING_MAX + 1} backlog,,${PENDING_FAILING_MAX + 1}`
      )
    })
    assert.equal(gone.received.length, 1)
    const alerts = await readRows(services, 'notices', { workspace_id: workspaceId }, 'subject_id')
    assert.deepEqual(pluck(alerts, 'subject_id'), ids)
  })

  test(`${engine}: a long queue is sent after a burst of events, and after the endpoint is enabled again`, async (t) => {
    const env = { ADIT_WEBHOOK_PRIVATE_NETWORKS: '127.0.0.0/8' }
    const server = await serve(t, { engine, env })
    const { services, workspace } = server
    const ann = await addMember(server, 'Ann', 'owner')
    const receiver = await startReceiver(t)
    // There are no rows of those that wait, as if they were deleted by age.
    const waiting = { url: receiver.url, last_position: PENDING_FAILING_MAX }
    await addEndpoint(services, workspace.id, waiting)
    const failing_since = Date.now() - 2 * HOUR_MS
    const disabled = { disabled_at: Date.now(), disabled_reason: 'backlog', failing_since }
    const full = { ...waiting, ...disabled, last_position: PENDING_MAX }
    const id = await addEndpoint(services, workspace.id, full)
    assert.equal((await ann.post(`/workspaces/acme/webhooks/${id}`, { enabled: true })).status, 200)
    await recordNumbered(services, workspace.id, 0, 1)
    await until('it arrives at both', () => receiver.received.length === 2)
    const { endpoints } = (await ann.get('/workspaces/acme/webhooks')).json
    assert.deepEqual(pluck(endpoints, 'disabledAt'), [null, null])
  })

  test(`${engine}: positions are in the order of changes, whatever the clocks of nodes say`, async () => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const id = await addEndpoint(services, workspaceId)
    const gone = await addEndpoint(services, workspaceId)
    const clock = () => HOUR_MS
    const behind = { ...services, clock, ids: createIds(clock, randomBytes) }
    await recordNumbered(services, workspaceId, 0, 2)
    await recordNumbered(behind, workspaceId, 2, 1)
    await recordNumbered(services, workspaceId, 3, 1)
    await services.store.transaction((tx) => deleteEndpoint(tx, gone))
    await queueEvents(services)
    await recordNumbered(behind, workspaceId, 4, 1)
    await queueEvents(services)
    assert.deepEqual(
      (await deliveriesOf(services, id)).map((delivery) => [delivery.position, readNumber(delivery)]),
      [0, 1, 2, 3, 4].map((number) => [number + 1, number]),
    )
    assert.deepEqual(await deliveriesOf(services, gone), [])
  })

  test(`${engine}: the time until the next attempt starts again with a new series of failures`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const receiver = await startReceiver(t, responses.failure)
    const id = await addEndpoint(services, workspaceId, { url: receiver.url })
    await recordNumbered(services, workspaceId, 0, 1)
    await setRows(services, 'webhook_deliveries', { attempts: 20 }, { endpoint_id: id })
    startDelivery(t, services)
    await until('it fails', async () => (await deliveriesOf(services, id))[0]?.attempts === 21)
    const [endpoint] = await readRows(services, 'webhook_endpoints', { id })
    assert.ok((endpoint?.due_at ?? Infinity) - (endpoint?.failing_since ?? 0) <= 5_000)
  })

  test(`${engine}: a slow endpoint with a long queue lets others have their turn`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const slow = await startReceiver(t, (response) => setTimeout(responses.ok, 20, response))
    const other = await startReceiver(t)
    await addEndpoint(services, workspaceId, { url: slow.url })
    await recordNumbered(services, workspaceId, 0, 50)
    startDelivery(t, services, { endpointsMax: 1, turnMs: 100 })
    await until('the slow one has its turn', () => slow.received.length > 0)
    await addEndpoint(services, workspaceId, { url: other.url })
    await recordNumbered(services, workspaceId, 50, 1)
    await until('the other one has its turn', () => other.received.length === 1)
    assert.ok(slow.received.length < 50)
  })

  test(`${engine}: deliveries that were deleted by age are skipped`, async (t) => {
    const { services } = await opening
    const workspaceId = await newWorkspace()
    const receiver = await startReceiver(t)
    const id = await addEndpoint(services, workspaceId, { url: receiver.url })
    const remove = () =>
      services.store.transaction((tx) =>
        tx.deleteFrom('webhook_deliveries').where('endpoint_id', '=', id).execute(),
      )
    await recordNumbered(services, workspaceId, 0, 2)
    await queueEvents(services)
    await remove()
    startDelivery(t, services)
    await until('nothing is due', async () => {
      const [endpoint] = await readRows(services, 'webhook_endpoints', { id })
      return endpoint?.due_at === null
    })
    await recordNumbered(services, workspaceId, 2, 1)
    await until('the next one arrives', () => receiver.received.length === 1)
    assert.deepEqual(receiver.unique().map(readNumber), [2])
  })
}

test('the time between attempts doubles from seconds to an hour', () => {
  const times = [0]
  for (let count = 0; count < 3; count++) times.push((times.at(-1) ?? 0) + retryInMs(times.at(-1) ?? 0, 1))
  assert.deepEqual(times, [0, 5_000, 15_000, 35_000])
  assert.equal(retryInMs(0, 0), 2_500)
  assert.equal(retryInMs(DAY_MS, 1), HOUR_MS)
})
