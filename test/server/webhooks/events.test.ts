// Events are written to the queues of webhook endpoints in the transaction of the change.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { sql } from 'kysely'
import Value from 'typebox/value'
import { type EventType, eventBody, events, eventTypes } from '../../../src/contract/events.ts'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import type { Context, Services } from '../../../src/server/domain/context.ts'
import { recordEvent, recordEvents, type WorkspaceEvent } from '../../../src/server/domain/events/record.ts'
import { recordExpiredKeys } from '../../../src/server/domain/keys/expired.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import type { Tx } from '../../../src/server/store/engine/store.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addWorkspace, operator, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { createRun } from '../../support/databases/maintenance-run.ts'
import { setRows } from '../../support/databases/rows.ts'
import { addEndpoint, deliveriesOf } from '../../support/events/webhooks.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

const renamed = (workspaceId: string, name: string): WorkspaceEvent => ({
  workspaceId,
  type: 'workspace.updated',
  data: { changes: { name: ['before', name] }, actor: { kind: 'operator', id: 'test', name: null } },
})

/** A copy with one more field in each object, except in `changes`, which may have any. */
function withUndeclared(value: unknown, name?: string): unknown {
  if (typeof value !== 'object' || value === null || name === 'changes') return value
  const parts = Object.entries(value).map(([member, part]) => [member, withUndeclared(part, member)])
  return { ...Object.fromEntries(parts), undeclared: 'internal' }
}

/** When all of them have a position, which the server assigns. */
async function readQueue(services: Services, endpointId: string) {
  let deliveries: Awaited<ReturnType<typeof deliveriesOf>> = []
  await until('they are in the queue', async () => {
    deliveries = await deliveriesOf(services, endpointId)
    return deliveries.every(({ position }) => position !== null)
  })
  return deliveries
}

async function createExpiredKey(ctx: Context): Promise<string> {
  const { id } = await createKey(ctx, { label: 'expired' })
  await setRows(ctx, 'api_keys', { expires_at: Date.now() - 1_000 }, { id })
  return id
}

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
    const queued = await readQueue(services, all)
    assert.deepEqual(
      queued.map(({ position, type, body }) => [position, type, body.data.changes.name[1]]),
      [
        [1, 'workspace.updated', 'first'],
        [2, 'workspace.updated', 'second'],
      ],
    )
    assert.equal(queued[0]?.body.workspace, 'acme')
    const same = await readQueue(services, some)
    assert.deepEqual(
      pluck(same, 'event_id'),
      queued.map(({ event_id }) => event_id),
    )
    assert.deepEqual(await deliveriesOf(services, others), [])
    assert.deepEqual(await deliveriesOf(services, disabled), [])
  })

  test(`${engine}: a field that the schema of an event does not declare is not sent, in any event`, async () => {
    const server = await serving
    const { services } = server
    const { workspace } = await addWorkspace(server, 'undeclared')
    const endpoint = await addEndpoint(services, workspace.id)
    const recorded = eventTypes.map((type) => ({
      workspaceId: workspace.id,
      type,
      data: withUndeclared(events[type].example),
    }))
    await services.store.transaction((tx) => recordEvents(tx, services, recorded as WorkspaceEvent[]))
    const queued = await readQueue(services, endpoint)
    assert.deepEqual(
      pluck(queued, 'type', 'body'),
      queued.map(({ body: { timestamp } }, index) => {
        const type = eventTypes[index] as EventType
        return [type, { type, timestamp, workspace: 'undeclared', data: events[type].example }]
      }),
    )
    assert.equal(queued.length, eventTypes.length)
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
        pluck(await readQueue(services, endpoint), 'position'),
        Array.from({ length: 20 }, (_, index) => index + 1),
      )
  })

  // A transaction on SQLite is the only writer.
  if (engine === 'postgres')
    test('postgres: a revocation does not wait for a node that hangs after it has recorded an event', async () => {
      const server = await serving
      const { services } = server
      const { ctx, workspace } = await addWorkspace(server, 'hung')
      const endpoint = await addEndpoint(services, workspace.id)
      const { id } = await createKey(ctx, { label: 'leaked' })
      const recorded = Promise.withResolvers<void>()
      const released = Promise.withResolvers<void>()
      const hung = services.store.transaction(async (tx) => {
        // Otherwise PostgreSQL would end it, and a revocation that waits would only be slow.
        await sql`set local idle_in_transaction_session_timeout = 0`.execute(tx)
        await recordEvent(tx, services, renamed(workspace.id, 'late'))
        recorded.resolve()
        await released.promise
      })
      await recorded.promise
      try {
        await revoke(ctx, id)
        assert.equal((await readQueue(services, endpoint)).length, 2)
      } finally {
        released.resolve()
      }
      await hung
      // What was committed last has the last position, although it was recorded earlier.
      const types = (await readQueue(services, endpoint)).map(({ type }) => type)
      assert.deepEqual(types, ['key.created', 'key.revoked', 'workspace.updated'])
    })

  // For each row it would read all rows before it, as long as they are not committed.
  if (engine === 'postgres')
    test('postgres: a statement that records many events searches the queue once', async () => {
      const server = await serving
      const { services } = server
      const { workspace } = await addWorkspace(server, 'burst')
      await addEndpoint(services, workspace.id)
      const events = Array.from({ length: 50 }, (_, index) => renamed(workspace.id, String(index)))
      const searches = async (tx: Tx) => {
        const { rows } = await sql<{ count: string }>`select coalesce(seq_scan, 0) + coalesce(idx_scan, 0)
          as count from pg_stat_xact_user_tables where relname = 'webhook_deliveries'`.execute(tx)
        return Number(rows[0]?.count)
      }
      await services.store.transaction(async (tx) => {
        const before = await searches(tx)
        await recordEvents(tx, services, events)
        assert.equal((await searches(tx)) - before, 1)
      })
    })

  test(`${engine}: changes of keys, members and the workspace are events that match the contract`, async () => {
    const server = await serving
    const { services } = server
    const { ctx, workspace } = await addWorkspace(server, 'corp')
    await provision(services, operator, 'corp')
    const endpoint = await addEndpoint(services, workspace.id, { created_at: 0 })
    const ann = await addMember(server, 'Ann', 'owner', 'corp')
    const api = (path: string) => `/workspaces/corp${path}`
    const first = (await ann.post(api('/keys'), { label: 'first' })).json
    const successor = (await ann.post(api(`/keys/${first.id}/rotate`), { overlap: '1h' })).json
    await ann.post(api(`/keys/${successor.id}/rotate`), { overlap: 'none' })
    const bob = await addMember(server, 'Bob', 'member', 'corp')
    await ann.post(api(`/members/${bob.id}`), { role: 'admin' })
    await ann.remove(api(`/members/${bob.id}`))
    await ann.post(api('/invitations'), { email: 'cy@example.com', role: 'member' })
    await ann.post(api('/name'), { name: 'Corp Inc.' })
    const expired = await createExpiredKey(ctx)
    await ann.post(api('/archive'), { confirm: 'corp' })
    for (let run = 0; run < 2; run++) await recordExpiredKeys(createRun(services), MINUTE_MS)
    const deliveries = await readQueue(services, endpoint)
    assert.deepEqual(pluck(deliveries, 'type'), [
      'member.invited',
      'member.joined',
      'key.created',
      'key.created',
      'key.rotated',
      'key.revoked',
      'key.created',
      'key.rotated',
      'member.invited',
      'member.joined',
      'member.updated',
      'member.removed',
      'member.invited',
      'workspace.updated',
      'key.created',
      'workspace.updated',
      'key.expired',
    ])
    for (const { type, body } of deliveries) {
      assert.ok(Value.Check(eventBody(type as EventType), body), `${type}: ${JSON.stringify(body)}`)
      assert.doesNotMatch(JSON.stringify(body), /adit_/)
    }
    assert.equal(deliveries[4]?.body.data.successor.id, successor.id)
    assert.deepEqual(deliveries[4]?.body.data.actor, { kind: 'user', id: ann.id, name: 'Ann' })
    assert.deepEqual(deliveries[13]?.body.data.changes, { name: ['corp', 'Corp Inc.'] })
    assert.equal(deliveries[16]?.body.data.key.id, expired)
  })
}
