// The stream of revocations: cursors, resets and ends.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { keyChanges } from '../../../src/server/http/api/change-events.ts'
import { deleteChangesBefore, readHead } from '../../../src/server/store/change-log/entries.ts'
import { publishChange } from '../../../src/server/verification/propagation.ts'
import { openTestServices, serveWithEdge } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { createOperator } from '../../support/processes/commands.ts'
import { startServing } from '../../support/processes/process.ts'
import { startFollower } from '../verification/node.ts'
import { announces, listen, parseSequence, type ReceivedEvent } from './change-stream.ts'

for (const engine of engines) {
  test(`${engine}: Last-Event-ID resumes without a gap`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { ctx } = server
    const keys = []
    for (let index = 0; index < 4; index++) keys.push(await createKey(ctx))
    const first = await listen(t, server.url, edge.token)
    await revoke(ctx, keys[0]?.id as string)
    await first.until(announces(keys[0] as never))
    const { id } = first.received.at(-1) as ReceivedEvent
    first.disconnect()
    for (const key of keys.slice(1)) await revoke(ctx, key.id)
    const second = await listen(t, server.url, edge.token, id)
    for (const key of keys.slice(1)) await second.until(announces(key))
    const ids = second.received.flatMap(({ id, event }) => (event ? [parseSequence(id)] : []))
    assert.deepEqual(ids, [2, 3, 4])
  })

  test(`${engine}: a new stream begins with the latest revocations, and marks their end`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { ctx } = server
    const [first, second] = [await createKey(ctx), await createKey(ctx)]
    await revoke(ctx, first.id)
    await revoke(ctx, second.id)
    const stream = await listen(t, server.url, edge.token)
    await stream.until((list) => list.length > 2)
    assert.ok(announces(first)(stream.received.slice(0, 1)))
    assert.ok(announces(second)(stream.received.slice(1, 2)))
    assert.deepEqual(
      stream.received.map(({ id }) => id && parseSequence(id)),
      [undefined, undefined, 2],
    )
  })

  test(`${engine}: an outdated cursor, or one of another database, gets a reset event`, async (t) => {
    let now = Date.now()
    const { server, edge } = await serveWithEdge(t, { engine, clock: () => now })
    const { ctx } = server
    await revoke(ctx, (await createKey(ctx)).id)
    await revoke(ctx, (await createKey(ctx)).id)
    const stream = await listen(t, server.url, edge.token)
    await stream.until((list) => parseSequence(list.at(-1)?.id) === 2)
    const seen = stream.received.at(-1)?.id
    now += 25 * 3_600_000
    const last = await createKey(ctx)
    await revoke(ctx, last.id)
    await server.services.store.transaction((db) => deleteChangesBefore(db, now - 24 * 3_600_000, 10))
    const { checksum } = await readHead(server.services.store.db)
    const cursors = {
      'before the oldest change': '0',
      'of a deleted change': '1-',
      'after the newest change': '99-',
      'without a checksum': '2',
      'with an empty checksum': '2-',
      'with the checksum of another database': `3-${'0'.repeat(16)}`,
    }
    for (const [reason, cursor] of Object.entries(cursors)) {
      const reset = await listen(t, server.url, edge.token, cursor)
      assert.deepEqual(reset.received[0], { event: 'reset', data: '{}' }, reason)
      await reset.until((list) => list.at(-1)?.id === `3-${checksum}`)
    }
    const resumed = await listen(t, server.url, edge.token, seen)
    await resumed.until(announces(last))
    assert.ok(!resumed.received.some(({ event }) => event === 'reset'))
  })
}

test('a node that missed changes which are deleted ends its streams instead of skipping them', async (t) => {
  const { server, edge } = await serveWithEdge(t, { engine: 'sqlite' })
  const stream = await listen(t, server.url, edge.token)
  const { services } = server
  await services.store.transaction(async (db) => {
    await publishChange(db, services, { kind: 'key', subjectId: 'key_1', hash: 'x' })
    await deleteChangesBefore(db, services.clock() + 1, 10)
  })
  await stream.until(() => stream.isOver())
  assert.ok(!stream.received.some(({ event }) => event))
})

test('an edge that is revoked while it connects gets no stream', async (t) => {
  const { services } = await openTestServices(t, 'sqlite')
  const follower = await startFollower(t, services)
  const { signal: closing } = new AbortController()
  const events = keyChanges(follower, {
    id: 'edge_1',
    isStillValid: async () => false,
    describeWorkspace: async () => ({ topic: 'acme' }),
    after: undefined,
    closing,
    openCluster: undefined,
  })
  assert.deepEqual(await events.next(), { value: undefined, done: true })
})

test('a comment is sent within 5 seconds, and a stop ends the stream', async (t) => {
  const { env, json } = await createOperator(t)
  const edge = await json('edge', 'create', 'fra-1')
  const serving = await startServing(t, env)
  const stream = await listen(t, serving.url, edge.token)
  await stream.until((list) => list.some(({ comment }) => comment), 6_000)
  const requestedAt = performance.now()
  assert.equal((await serving.stop()).code, 0)
  assert.ok(performance.now() - requestedAt < 5_000, 'the stream delayed the stop')
  await stream.until(() => stream.isOver())
})

test('an invalid Last-Event-ID is 400', async (t) => {
  const { edge } = await serveWithEdge(t, { engine: 'sqlite' })
  for (const id of ['', 'abc', '-1', '1.5', '1-x', `${'9'.repeat(16)}-`]) {
    const { status, json } = await edge.call('GET', '/key-changes', { headers: { 'last-event-id': id } })
    assert.equal(status, 400, id)
    assert.equal(json.details[0].path, '/headers/last-event-id')
  }
})
