// Endpoints that hang do not use up the slots that a node has for the deliveries of all workspaces.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import type { Services } from '../../../src/server/domain/context.ts'
import type { ClaimedEndpoint } from '../../../src/server/domain/webhooks/queue.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { DeliverySlots } from '../../../src/server/webhooks/delivery-slots.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'
import { responses, startReceiver } from '../../support/events/webhook-receiver.ts'
import {
  addEndpoint,
  makeDue,
  readNumber,
  recordNumbered,
  startDelivery,
} from '../../support/events/webhooks.ts'
import { until } from '../../support/until.ts'

const SLOTS = 8
/** Longer than a test waits for what should not be delayed. */
const HANG_MS = 14_000
const SOON_MS = 10_000

/** Holds requests open until the test ends them, and counts them. */
async function startHanging(t: Test) {
  const open = new Set<() => void>()
  const state = { mostAtOnce: 0 }
  const receiver = await startReceiver(t, (response) => {
    const respond = () => responses.ok(response)
    open.add(respond)
    state.mostAtOnce = Math.max(state.mostAtOnce, open.size)
    response.on('close', () => open.delete(respond))
  })
  const respondToAll = () => {
    receiver.respond = responses.ok
    for (const respond of open) respond()
  }
  return Object.assign(state, { receiver, open, respondToAll })
}

for (const engine of engines) {
  let workspaces = 0
  const addWorkspace = async (services: Services) =>
    (await createWorkspace(services, operator, { slug: `ws-${engine}-${++workspaces}` })).id
  // Without a server, which would send too.
  const opening = () => openTestServices({ after }, engine)

  test(`${engine}: endpoints of a few workspaces that hang in all slots of two nodes delay no other workspace, and get their events later`, async (t) => {
    const { services } = await opening()
    const hanging = await startHanging(t)
    const heavy = [await addWorkspace(services), await addWorkspace(services)]
    for (const workspaceId of heavy) {
      for (let index = 0; index < 10; index++)
        await addEndpoint(services, workspaceId, { url: hanging.receiver.url })
      await recordNumbered(services, workspaceId, 0, 1)
    }
    const options = { endpointsMax: SLOTS, sendTimeoutMs: HANG_MS }
    for (let node = 0; node < 2; node++) startDelivery(t, services, options)
    await until('all slots are taken', () => hanging.open.size === 2 * SLOTS)
    for (let index = 0; index < 5; index++) {
      const receiver = await startReceiver(t)
      const workspaceId = await addWorkspace(services)
      await addEndpoint(services, workspaceId, { url: receiver.url })
      await recordNumbered(services, workspaceId, 0, 3)
      await until('the events arrive', () => receiver.unique().length === 3, SOON_MS)
      assert.deepEqual(receiver.unique().map(readNumber), [0, 1, 2])
    }
    hanging.respondToAll()
    await until('each endpoint that hung has its event', async () => {
      await makeDue(services)
      const deliveries = await readRows(services, 'webhook_deliveries')
      return deliveries.every(({ delivered_at }) => delivered_at !== null)
    })
  })

  test(`${engine}: endpoints that are failing get at most half of the slots, however many workspaces they belong to`, async (t) => {
    const { services } = await opening()
    const hanging = await startHanging(t)
    for (let index = 0; index < 2 * SLOTS; index++) {
      const workspaceId = await addWorkspace(services)
      const failing = { url: hanging.receiver.url, failing_since: services.clock() }
      await addEndpoint(services, workspaceId, failing)
      await recordNumbered(services, workspaceId, 0, 1)
    }
    startDelivery(t, services, { endpointsMax: SLOTS, sendTimeoutMs: HANG_MS })
    await until('half of the slots are taken', () => hanging.open.size === SLOTS / 2)
    const receiver = await startReceiver(t)
    const workspaceId = await addWorkspace(services)
    for (let index = 0; index < SLOTS; index++)
      await addEndpoint(services, workspaceId, { url: receiver.url })
    await recordNumbered(services, workspaceId, 0, 2)
    await until('the events arrive', () => receiver.received.length === 2 * SLOTS, SOON_MS)
    assert.equal(hanging.mostAtOnce, SLOTS / 2)
  })
}

test('an endpoint that is claimed again while all slots are taken displaces no other workspace', () => {
  const slots = new DeliverySlots(4)
  const take = (id: string, workspace_id: string) =>
    slots.take({ id, workspace_id, failing_since: null } as ClaimedEndpoint)
  const heavy = ['a1', 'a2', 'a3'].map((id) => take(id, 'a'))
  const earlier = take('b1', 'b')
  const later = take('b1', 'b')
  assert.deepEqual(
    [...heavy, earlier, later].map(({ signal }) => signal.aborted),
    [false, false, false, true, false],
  )
  earlier.release()
  assert.equal(slots.limitsForAll().limit, 0, 'the later claim keeps the slot')
  later.release()
  assert.equal(slots.limitsForAll().limit, 1)
})
