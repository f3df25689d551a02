// The edge kit's verifier: from memory where that is safe, and never a revoked key.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ControlPlane,
  ControlPlaneError,
  createControlPlane,
  startVerifier,
  type VerifierOptions,
} from 'adit/edge'
import { revoke as revokeEdge } from '../../src/domain/edges.ts'
import { createKey, revoke } from '../../src/domain/keys.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createDatabase, type Engine, engines } from '../support/databases.ts'
import { root, run, startServing } from '../support/process.ts'
import { startRelay } from '../support/relay.ts'
import { addEdge, operator, serve, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

const mint = (server: TestServer) =>
  createKey({ ...server.world, actor: operator, workspaceId: server.workspace.id }, '')

const revokeKey = (server: TestServer, key: { id: string }) =>
  revoke({ ...server.world, actor: operator, workspaceId: server.workspace.id }, key.id)

/** A verifier at a real server, by way of a relay; it counts what it asks. */
async function setUp(t: Test, options: VerifierOptions = {}, engine: Engine = 'sqlite') {
  const server = await serve(t, { engine })
  const edge = await addEdge(server)
  const relay = await startRelay(t, server.url)
  const direct = createControlPlane({ url: server.url, credential: edge.token })
  const relayed = createControlPlane({ url: relay.url, credential: edge.token })
  const { counted, asked } = counting(relayed)
  const notices: string[] = []
  const start = (controlPlane: ControlPlane, more: VerifierOptions = {}) => {
    const all = { onNotice: (line: string) => notices.push(line), ...options, ...more }
    const verifier = startVerifier(controlPlane, all)
    atEnd(t, verifier.close)
    return verifier
  }
  return { server, edge, relay, direct, relayed, counted, asked, notices, start }
}

/** Notes every question. */
function counting(controlPlane: ControlPlane) {
  const asked: string[] = []
  const verify = (key: string) => {
    asked.push(key)
    return controlPlane.verify(key)
  }
  return { counted: { ...controlPlane, verify }, asked }
}

/** Memory is used once the stream stands: the second question is not asked any more. */
async function warm(verifier: { verify(key: string): Promise<unknown> }, key: string, asked: string[]) {
  await until('a key is remembered', async () => {
    const before = asked.length
    await verifier.verify(key)
    await verifier.verify(key)
    return asked.length === before || asked.length === before + 1
  })
}

for (const engine of engines) {
  test(`${engine}: a key is asked about once, and refused without asking once its revocation was heard`, async (t) => {
    const gone: string[] = []
    const { server, counted, asked, start } = await setUp(t, { onRevoked: (id) => gone.push(id) }, engine)
    const verifier = start(counted)
    const key = await mint(server)
    await warm(verifier, key.token, asked)
    const before = asked.length
    for (let round = 0; round < 50; round++) {
      assert.deepEqual(await verifier.verify(key.token), {
        valid: true,
        keyId: key.id,
        workspace: { slug: 'acme', name: 'Acme', provisioned: true, tunnelBase: 'acme.localhost' },
      })
    }
    assert.equal(asked.length, before)
    await revokeKey(server, key)
    const ms = await until('the revocation is heard', () => gone.length > 0, 1_000)
    assert.deepEqual(gone, [key.id])
    assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
    assert.equal(asked.length, before)
    t.diagnostic(`heard ${Math.round(ms)} ms after the revocation was committed`)
  })

  test(`${engine}: an answer in flight does not bring a revoked key back`, async (t) => {
    const gone: string[] = []
    const { server, relay, direct, relayed, start } = await setUp(
      t,
      { onRevoked: (id) => gone.push(id) },
      engine,
    )
    // Revocations come straight, answers by way of the relay, which holds them back.
    const verifier = start({ ...direct, verify: relayed.verify })
    const key = await mint(server)
    assert.equal((await verifier.verify(key.token)).valid, true)
    await sleep(300)
    const other = await mint(server)
    relay.hold()
    const inFlight = verifier.verify(other.token)
    await sleep(200)
    await revokeKey(server, other)
    await until('the revocation is heard', () => gone.includes(other.id))
    relay.release()
    assert.deepEqual(await inFlight, { valid: false, reason: 'revoked' })
    assert.deepEqual(await verifier.verify(other.token), { valid: false, reason: 'revoked' })
  })
}

test('a node that has not heard of a revocation yet does not bring the key back either', async (t) => {
  const { server, direct, start } = await setUp(t)
  const key = await mint(server)
  const good = await direct.verify(key.token)
  await revokeKey(server, key)
  await sleep(600)
  // The stream is new and begins after the revocation; the node that is asked lags behind.
  const verifier = start({ ...direct, verify: async () => good })
  await until('the key is refused', async () => !(await verifier.verify(key.token)).valid)
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
})

test('while the stream is lost, keys are remembered up to the bound, and not a moment longer', async (t) => {
  const { server, relay, counted, asked, notices, start } = await setUp(t, { lossAfterMs: 1_500 })
  const verifier = start(counted)
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  const before = asked.length
  relay.cut()
  assert.equal((await verifier.verify(key.token)).valid, true, 'within the bound')
  assert.equal(asked.length, before)
  await until('it is not trusted any more', () =>
    verifier.verify(key.token).then(
      () => false,
      () => true,
    ),
  )
  await assert.rejects(verifier.verify(key.token), (error: Error) => {
    assert.ok(error instanceof ControlPlaneError)
    assert.match(error.message, /^http:\/\/127\.0\.0\.1:\d+ cannot be reached: /)
    return true
  })
  relay.mend()
  await until('it is asked again', () =>
    verifier.verify(key.token).then(
      ({ valid }) => valid,
      () => false,
    ),
  )
  await warm(verifier, key.token, asked)
  assert.equal(notices.length, 2, notices.join('\n'))
  assert.match(
    notices[0] as string,
    /^The stream of revocations is lost \(.+\)\. Keys are remembered for 1500 ms/,
  )
  assert.match(notices[1] as string, /again\.$/)
})

test('a stream that falls silent without ending is lost too', async (t) => {
  const { server, relay, direct, relayed, start } = await setUp(t, { lossAfterMs: 1_000 })
  // Questions come straight through; only the stream is held.
  const { counted, asked } = counting({ ...relayed, verify: direct.verify })
  const verifier = start(counted)
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  relay.hold()
  await revokeKey(server, key)
  const ms = await until('the key is refused', async () => !(await verifier.verify(key.token)).valid)
  assert.ok(ms < 2_000, `${ms} ms`)
})

test('a stream that was lost for a moment goes on where it was, and nothing is forgotten', async (t) => {
  const gone: string[] = []
  const { server, relay, counted, asked, start } = await setUp(t, { onRevoked: (id) => gone.push(id) })
  const verifier = start(counted)
  const [stays, goes] = [await mint(server), await mint(server)]
  await warm(verifier, stays.token, asked)
  await warm(verifier, goes.token, asked)
  const before = asked.length
  relay.cut()
  await revokeKey(server, goes)
  relay.mend()
  await until('what was missed is heard', () => gone.includes(goes.id))
  assert.deepEqual(await verifier.verify(goes.token), { valid: false, reason: 'revoked' })
  assert.equal((await verifier.verify(stays.token)).valid, true)
  assert.equal(asked.length, before)
})

test('a reset makes it forget everything and say so', async (t) => {
  let resets = 0
  const { server, counted, asked, start } = await setUp(t, { onReset: () => resets++ })
  let position: string | undefined
  // The first stream is cut short and resumed with the number of another database.
  const verifier = start({
    ...counted,
    keyChanges: (after, signal) =>
      counted.keyChanges(after === undefined ? undefined : (position ?? after), signal),
  })
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  position = '99999'
  const before = asked.length
  await cutStreams(server)
  await until('the reset', () => resets > 0)
  assert.equal((await verifier.verify(key.token)).valid, true)
  assert.equal(asked.length, before + 1)
})

/** An edge that reads too slowly, or is revoked, loses its stream; here every one does. */
async function cutStreams(server: TestServer): Promise<void> {
  const { store } = server.world
  // A gap in the feed ends the streams: the number goes up by two.
  await store.transaction((db) => db.updateTable('key_feed_head').set({ number: 5 }).execute())
  await revokeKey(server, await mint(server))
}

test('a process that stood still does not trust what it remembers', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const json = async (...words: string[]) => JSON.parse((await run(t, [...words, '--json'], env)).stdout)
  await json('admin', 'workspace', 'create', 'acme')
  const key = await json('admin', 'key', 'create', '--workspace', 'acme')
  const edge = await json('admin', 'edge', 'create', 'fra-1')
  const serving = await startServing(t, env)
  const { counted, asked } = counting(createControlPlane({ url: serving.url, credential: edge.token }))
  const verifier = startVerifier(counted, { lossAfterMs: 5_500 })
  atEnd(t, verifier.close)
  await warm(verifier, key.token, asked)
  // Everything in this process waits for the command, and then for longer than the bound.
  execFileSync(process.execPath, [join(root, 'bin/adit.js'), 'admin', 'key', 'revoke', key.id], {
    env: { ...process.env, ...env },
  })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000)
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
})

test('memory is bounded: the key not used for longest is forgotten first', async (t) => {
  const { server, counted, asked, start } = await setUp(t, { keysMax: 2 })
  const verifier = start(counted)
  const [a, b, c] = [await mint(server), await mint(server), await mint(server)]
  await warm(verifier, a.token, asked)
  await verifier.verify(b.token)
  await verifier.verify(a.token)
  await verifier.verify(c.token)
  asked.length = 0
  for (const key of [a, c, b]) await verifier.verify(key.token)
  assert.deepEqual(asked, [b.token])
})

test('what is known of the workspace grows old, and is then asked for; without an answer the old one serves', async (t) => {
  const { server, relay, direct, relayed, start } = await setUp(t, { askAgainAfterMs: 300 })
  // The stream goes straight, so that it outlives the relay's cut.
  const { counted, asked } = counting({ ...direct, verify: relayed.verify })
  const verifier = start(counted)
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  await server.world.store.transaction((db) =>
    db.updateTable('workspaces').set({ name: 'Acme Ltd' }).execute(),
  )
  await until('the new name', async () => {
    const verdict = await verifier.verify(key.token)
    return verdict.valid && verdict.workspace.name === 'Acme Ltd'
  })
  relay.cut()
  await sleep(400)
  assert.equal((await verifier.verify(key.token)).valid, true)
})

test('keys asked about at the same time are one question; too many at once are refused, not queued', async (t) => {
  const { server, relay, direct, relayed, start } = await setUp(t)
  const { counted, asked } = counting({ ...direct, verify: relayed.verify })
  const verifier = start(counted)
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  const other = await mint(server)
  asked.length = 0
  const verdicts = await Promise.all(Array.from({ length: 20 }, () => verifier.verify(other.token)))
  assert.ok(verdicts.every(({ valid }) => valid))
  assert.equal(asked.length, 1)
  relay.hold()
  const flood = Array.from({ length: 1_001 }, (_, index) => verifier.verify(`adit_${index}`))
  await assert.rejects(flood[1_000] as Promise<unknown>, /1000 keys are being verified at this moment/)
  relay.cut()
  await Promise.allSettled(flood)
  assert.deepEqual(await verifier.verify('x'.repeat(201)), { valid: false, reason: 'unknown' })
})

test('an edge whose credential was revoked lets nobody in, and is told why', async (t) => {
  const { server, edge, counted, asked, notices, start } = await setUp(t, { lossAfterMs: 800 })
  const verifier = start(counted)
  const key = await mint(server)
  await warm(verifier, key.token, asked)
  await revokeEdge(server.world, operator, edge.id)
  await until('nobody is let in', () =>
    verifier.verify(key.token).then(
      () => false,
      () => true,
    ),
  )
  await assert.rejects(verifier.verify(key.token), /answered 401: This edge credential was revoked/)
  assert.equal(notices.length, 1)
})

test('an address or a credential that cannot be one is refused at once', () => {
  for (const url of ['', 'adit.example.com', 'ftp://x', '/edge'])
    assert.throws(
      () => createControlPlane({ url, credential: 'adit_edge_x' }),
      /is no address of a control plane/,
    )
  for (const credential of ['', 'a b', 'a\nb'])
    assert.throws(() => createControlPlane({ url: 'http://x', credential }), /credential of an edge/)
})
