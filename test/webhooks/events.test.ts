// Events are written to the queues of webhook endpoints in the transaction of the change.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { recordEvent, recordEvents, type WorkspaceEvent } from '../../src/domain/events.ts'
import { engines } from '../support/databases.ts'
import { addWorkspace, serve } from '../support/server.ts'
import { addEndpoint, deliveriesOf } from '../support/webhooks.ts'

const renamed = (workspaceId: string, name: string): WorkspaceEvent => ({
  workspaceId,
  type: 'workspace.updated',
  data: { changes: { name: ['before', name] }, actor: { kind: 'operator', id: 'test', name: null } },
})

for (const engine of engines) {
  const serving = serve({ after }, { engine })

  test(`${engine}: an event is queued for each enabled endpoint that wants it, if the change is committed`, async () => {
    const { services, workspace } = await serving
    const { store } = services
    const all = await addEndpoint(services, workspace.id)
    const some = await addEndpoint(services, workspace.id, { events: ',key.created,workspace.updated,' })
    const others = await addEndpoint(services, workspace.id, { events: ',key.created,' })
    const disabled = await addEndpoint(services, workspace.id, { disabled_at: 1 })
    await store.transaction((tx) => recordEvent(tx, services, renamed(workspace.id, 'first')))
    const failed = store.transaction(async (tx) => {
      await recordEvent(tx, services, renamed(workspace.id, 'rolled back'))
      throw new Error('rolled back')
    })
    await assert.rejects(failed, /rolled back/)
    await store.transaction((tx) => recordEvent(tx, services, renamed(workspace.id, 'second')))
    const queued = await deliveriesOf(services, all)
    assert.deepEqual(
      queued.map(({ position, type, body }) => [position, type, body.data.changes.name[1]]),
      [
        [1, 'workspace.updated', 'first'],
        [2, 'workspace.updated', 'second'],
      ],
    )
    assert.equal(queued[0]?.body.workspace, 'acme')
    const same = await deliveriesOf(services, some)
    assert.deepEqual(
      same.map(({ event_id }) => event_id),
      queued.map(({ event_id }) => event_id),
    )
    assert.deepEqual(await deliveriesOf(services, others), [])
    assert.deepEqual(await deliveriesOf(services, disabled), [])
  })

  test(`${engine}: concurrent events of several workspaces get consecutive positions`, async () => {
    const server = await serving
    const { services } = server
    const ids = await Promise.all(
      ['one', 'two', 'none'].map(async (slug) => (await addWorkspace(server, slug)).workspace.id),
    )
    const endpoints = await Promise.all(ids.slice(0, 2).map((id) => addEndpoint(services, id)))
    const write = (round: number) =>
      services.store.transaction((tx) =>
        recordEvents(
          tx,
          services,
          // In different orders, which could deadlock.
          (round % 2 === 0 ? ids : ids.toReversed()).map((id) => renamed(id, `${round}`)),
        ),
      )
    await Promise.all(Array.from({ length: 20 }, (_, round) => write(round)))
    for (const endpoint of endpoints)
      assert.deepEqual(
        (await deliveriesOf(services, endpoint)).map(({ position }) => position),
        Array.from({ length: 20 }, (_, index) => index + 1),
      )
  })
}
