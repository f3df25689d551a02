// The stream of revocations, as an edge reads it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { hashSecret } from '../../../src/lib/credentials/secret.ts'
import { startChangeFollower } from '../../../src/server/directory/change-follower.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { keyChanges } from '../../../src/server/http/api/change-events.ts'
import { deleteChangesBefore, readHead } from '../../../src/server/store/changes/log.ts'
import { addEdge, openTestServices, operator, serve, type TestServer } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { run, startServing } from '../../support/processes/process.ts'

interface ReceivedEvent {
  id?: string
  event?: string
  data?: string
  comment?: string
}

/** Collects the events of a stream; `until` waits for one, and returns how many milliseconds it took. */
async function listen(t: Test, url: string, token: string, lastEventId?: string) {
  const gone = new AbortController()
  atEnd(t, () => gone.abort())
  const response = await fetch(`${url}/edge/v1/key-changes`, {
    headers: {
      authorization: `Bearer ${token}`,
      ...(lastEventId !== undefined && { 'last-event-id': lastEventId }),
    },
    signal: gone.signal,
  })
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/event-stream')
  const received: ReceivedEvent[] = []
  let over = false
  void (async () => {
    let text = ''
    for await (const chunk of response.body as AsyncIterable<Uint8Array>) {
      text += Buffer.from(chunk).toString()
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const fields = text
          .slice(0, end)
          .split('\n')
          .map((line) => line.split(/: ?(.*)/s))
        received.push(Object.fromEntries(fields.map(([name, value]) => [name || 'comment', value])))
        text = text.slice(end + 2)
      }
    }
    over = true
  })().catch(() => {
    over = true
  })
  const until = async (holds: (received: ReceivedEvent[]) => boolean, ms = 30_000) => {
    const began = performance.now()
    while (!holds(received)) {
      assert.ok(performance.now() - began < ms, `not received within ${ms} ms: ${JSON.stringify(received)}`)
      await new Promise((resolve) => setTimeout(resolve, 5))
    }
    return performance.now() - began
  }
  await until((list) => list.length > 0)
  return { received, until, isOver: () => over, disconnect: () => gone.abort() }
}

const announces = (key: { id: string; token: string }) => (list: ReceivedEvent[]) =>
  list.some(
    ({ event, data }) => event === 'revoked' && data === JSON.stringify({ hash: hashSecret(key.token) }),
  )

/** The sequence, with which an id begins. */
const sequenceOf = (id = '') => Number.parseInt(id, 10)

const createTestKey = (server: TestServer) =>
  createKey({ ...server.services, actor: operator, workspaceId: server.workspace.id })

for (const engine of engines) {
  test(`${engine}: a revocation through the API reaches a connected edge within a second`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    const stream = await listen(t, server.url, edge.token)
    const times: number[] = []
    for (let round = 0; round < 10; round++) {
      const made = (await server.post('/tokens', {})).json
      await server.call('DELETE', `/tokens/${made.id}`)
      times.push(await stream.until(announces(made), 1_000))
    }
    const ids = stream.received.flatMap(({ id, event }) => (event ? [sequenceOf(id)] : []))
    assert.deepEqual(ids, [1, 2, 3, 4, 5, 6, 7, 8, 9, 10])
    t.diagnostic(`received at most ${Math.round(Math.max(...times))} ms after the acknowledgement`)
  })

  test(`${engine}: a revocation by a command in another process reaches it within a second`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
    await json('admin', 'workspace', 'create', 'acme')
    const key = await json('admin', 'key', 'create', '--workspace', 'acme')
    const edge = await json('admin', 'edge', 'create', 'fra-1')
    const serving = await startServing(t, env)
    const stream = await listen(t, serving.url, edge.token)
    await json('admin', 'key', 'revoke', key.id, '--yes')
    const ms = await stream.until(announces(key), 1_000)
    t.diagnostic(`received ${Math.round(ms)} ms after the command had ended`)
  })

  test(`${engine}: Last-Event-ID resumes without a gap`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    const keys = []
    for (let index = 0; index < 4; index++) keys.push(await createTestKey(server))
    const ctx = { ...server.services, actor: operator, workspaceId: server.workspace.id }
    const first = await listen(t, server.url, edge.token)
    await revoke(ctx, keys[0]?.id as string)
    await first.until(announces(keys[0] as never))
    const { id } = first.received.at(-1) as ReceivedEvent
    first.disconnect()
    for (const key of keys.slice(1)) await revoke(ctx, key.id)
    const second = await listen(t, server.url, edge.token, id)
    for (const key of keys.slice(1)) await second.until(announces(key))
    const ids = second.received.flatMap(({ id, event }) => (event ? [sequenceOf(id)] : []))
    assert.deepEqual(ids, [2, 3, 4])
  })

  test(`${engine}: a new stream begins with the latest revocations, and marks their end`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    const ctx = { ...server.services, actor: operator, workspaceId: server.workspace.id }
    const [first, second] = [await createTestKey(server), await createTestKey(server)]
    await revoke(ctx, first.id)
    await revoke(ctx, second.id)
    const stream = await listen(t, server.url, edge.token)
    await stream.until((list) => list.length > 2)
    assert.ok(announces(first)(stream.received.slice(0, 1)))
    assert.ok(announces(second)(stream.received.slice(1, 2)))
    assert.deepEqual(
      stream.received.map(({ id }) => id && sequenceOf(id)),
      [undefined, undefined, 2],
    )
  })

  test(`${engine}: an outdated cursor, or one of another database, gets a reset event`, async (t) => {
    let now = Date.now()
    const server = await serve(t, { engine, clock: () => now })
    const edge = await addEdge(server)
    const ctx = { ...server.services, actor: operator, workspaceId: server.workspace.id }
    await revoke(ctx, (await createTestKey(server)).id)
    await revoke(ctx, (await createTestKey(server)).id)
    const seen = (await listen(t, server.url, edge.token)).received.at(-1)?.id
    assert.equal(sequenceOf(seen), 2)
    now += 25 * 3_600_000
    const last = await createTestKey(server)
    await revoke(ctx, last.id)
    await server.services.store.transaction((db) => deleteChangesBefore(db, now - 24 * 3_600_000, 10))
    // A node that missed changes which are no longer kept ends its streams, instead of skipping the changes.
    const lagging = await listen(t, server.url, edge.token)
    await lagging.until((list) => lagging.isOver() || list.some(({ id }) => sequenceOf(id) === 3))
    assert.ok(!lagging.received.some(({ id, event }) => id && event))
    const { checksum } = await readHead(server.services.store.db)
    for (const cursor of ['0', '1-', '99-', '2', '2-', `3-${'0'.repeat(16)}`]) {
      const stream = await listen(t, server.url, edge.token, cursor)
      assert.deepEqual(stream.received[0], { event: 'reset', data: '{}' }, cursor)
      await stream.until((list) => list.at(-1)?.id === `3-${checksum}`)
    }
    const resumed = await listen(t, server.url, edge.token, seen)
    await resumed.until(announces(last))
    assert.ok(!resumed.received.some(({ event }) => event === 'reset'))
  })

  test(`${engine}: when an edge is revoked its stream ends within a second, and the others continue`, async (t) => {
    const server = await serve(t, { engine })
    const [gone, stays] = [await addEdge(server, 'gone'), await addEdge(server, 'stays')]
    const [ends, continues] = [
      await listen(t, server.url, gone.token),
      await listen(t, server.url, stays.token),
    ]
    await revokeEdge(server.services, operator, gone.id)
    await ends.until(() => ends.isOver(), 1_000)
    const made = (await server.post('/tokens', {})).json
    await server.call('DELETE', `/tokens/${made.id}`)
    await continues.until(announces(made), 1_000)
    assert.ok(!JSON.stringify(continues.received).includes(gone.id), 'an edge receives nothing about another')
    assert.equal((await gone.call('GET', '/key-changes')).status, 401)
  })
}

test('an edge that is revoked while it connects gets no stream', async (t) => {
  const { services } = await openTestServices(t, 'sqlite')
  const node = { id: 'node_1', host: 'here', pid: 1, version: '1' }
  const follower = await startChangeFollower(services.store, services.clock, node, {
    onFailure: assert.fail,
    onRecovery() {},
  })
  atEnd(t, () => services.store.close())
  atEnd(t, () => follower.deregister())
  const { signal: closing } = new AbortController()
  const events = keyChanges(follower, {
    id: 'edge_1',
    isStillValid: async () => false,
    workspaceOf: async () => ({ topic: 'acme' }),
    after: undefined,
    closing,
  })
  assert.deepEqual(await events.next(), { value: undefined, done: true })
})

test('a comment is sent within 5 seconds, and a stop ends the stream', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const edge = JSON.parse((await run(t, ['admin', 'edge', 'create', 'fra-1', '--json'], env)).stdout)
  const serving = await startServing(t, env)
  const stream = await listen(t, serving.url, edge.token)
  await stream.until((list) => list.some(({ comment }) => comment), 6_000)
  const requestedAt = performance.now()
  serving.child.kill('SIGTERM')
  assert.equal((await serving.ended).code, 0)
  assert.ok(performance.now() - requestedAt < 5_000, 'the stream delayed the stop')
  await stream.until(() => stream.isOver())
})

test('an invalid Last-Event-ID is 400', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  for (const id of ['', 'abc', '-1', '1.5', '1-x', `${'9'.repeat(16)}-`]) {
    const { status, json } = await edge.call('GET', '/key-changes', { headers: { 'last-event-id': id } })
    assert.equal(status, 400, id)
    assert.equal(json.details[0].path, '/headers/last-event-id')
  }
})
