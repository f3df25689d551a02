// The edge SDK's verifier: cached results while revocations are received, and never a revoked key.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { createHash } from 'node:crypto'
import { createServer } from 'node:http'
import { join } from 'node:path'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import {
  type ControlPlane,
  ControlPlaneError,
  createControlPlane,
  startVerifier,
  type VerifierOptions,
  type VerifyResult,
} from '../../src/edge-sdk/index.ts'
import type { ServerEvent } from '../../src/edge-sdk/sse-parser.ts'
import { createSecret } from '../../src/lib/credentials/secret.ts'
import { revoke as revokeEdge } from '../../src/server/domain/tunnels/edges.ts'
import { provision } from '../../src/server/domain/workspaces/manage.ts'
import { createTopics } from '../../src/server/verification/topics.ts'
import { addWorkspace, operator, type TestServer } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createMigratedDatabase, engines } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { listen } from '../support/network/listen.ts'
import { root, run, startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { counting, newKey, revokeKey, setUpVerifier, warm } from './verifier.ts'

for (const engine of engines) {
  test(`${engine}: a key is verified once, and rejected from the cache after its revocation`, async (t) => {
    const gone: string[] = []
    const { server, counted, requested, start } = await setUpVerifier(
      t,
      { onRevoked: (id) => gone.push(id) },
      engine,
    )
    const verifier = start(counted)
    const key = await newKey(server)
    await warm(verifier, key.token, requested)
    const before = requested.length
    for (let round = 0; round < 50; round++) {
      assert.deepEqual(await verifier.verify(key.token), {
        valid: true,
        keyId: key.id,
        grant: await verifier.grant(key.token),
        workspace: {
          slug: 'acme',
          name: 'Acme',
          provisioned: true,
          tunnelBase: 'acme.localhost',
          topic: createTopics(SECRET)(server.workspace.id),
        },
      })
    }
    assert.equal(requested.length, before)
    await revokeKey(server, key)
    const ms = await until('the revocation is received', () => gone.length > 0, 1_000)
    assert.deepEqual(gone, [key.id])
    assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
    assert.equal(requested.length, before)
    t.diagnostic(`received ${Math.round(ms)} ms after the revocation was committed`)
  })

  test(`${engine}: a response in flight does not make a revoked key valid again`, async (t) => {
    const gone: string[] = []
    const { server, relay, direct, relayed, start } = await setUpVerifier(
      t,
      { onRevoked: (id) => gone.push(id) },
      engine,
    )
    // Revocations arrive directly; verification responses pass the relay, which delays them.
    const verifier = start({ ...direct, verify: relayed.verify })
    const key = await newKey(server)
    assert.equal((await verifier.verify(key.token)).valid, true)
    await sleep(300)
    const other = await newKey(server)
    relay.hold()
    const inFlight = verifier.verify(other.token)
    await sleep(200)
    await revokeKey(server, other)
    // The edge does not know the other key yet, so a later revocation shows that this one was received.
    await revokeKey(server, key)
    await until('the revocations are received', () => gone.includes(key.id))
    relay.release()
    assert.deepEqual(await inFlight, { valid: false, reason: 'revoked' })
    assert.deepEqual(await verifier.verify(other.token), { valid: false, reason: 'revoked' })
  })
}

test('a node that lags behind does not make a revoked key valid again', async (t) => {
  const { server, direct, start } = await setUpVerifier(t)
  const key = await newKey(server)
  const accepted = await direct.verify(key.token)
  await revokeKey(server, key)
  await sleep(600)
  // The stream starts after the revocation; the node that verifies lags behind.
  const verifier = start({ ...direct, verify: async () => accepted })
  await until('the key is rejected', async () => !(await verifier.verify(key.token)).valid)
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
})

test('while the stream is lost, cached keys are used until staleAfterMs, and not longer', async (t) => {
  const { server, relay, counted, requested, notices, start } = await setUpVerifier(t, {
    staleAfterMs: 1_500,
  })
  const verifier = start(counted)
  const key = await newKey(server)
  await warm(verifier, key.token, requested)
  const before = requested.length
  relay.cut()
  // The server's heartbeats are less frequent than staleAfterMs, so a slow start has outages of its own.
  notices.length = 0
  assert.equal((await verifier.verify(key.token)).valid, true, 'within staleAfterMs')
  assert.equal(requested.length, before)
  await until('the cache has expired', () =>
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
  await until('the key is verified again', () =>
    verifier.verify(key.token).then(
      ({ valid }) => valid,
      () => false,
    ),
  )
  const isEnd = (line: string) => line === 'Receiving revocations again.'
  await until('the stream is received again', () => notices.some(isEnd))
  const outageNotices = notices.slice(0, notices.findIndex(isEnd))
  assert.ok(outageNotices.length === 1 || outageNotices.length === 2, notices.join('\n'))
  for (const [index, notice] of outageNotices.entries()) {
    assert.match(notice, /^Lost the stream of revocations: .+\. Cached keys expire 1500 ms after/)
    assert.notEqual(notice, outageNotices[index - 1], 'another one only for another reason')
  }
  await warm(verifier, key.token, requested)
})

test('a stream that becomes silent without closing counts as lost', async (t) => {
  const { server, relay, direct, relayed, start } = await setUpVerifier(t, { staleAfterMs: 1_000 })
  // Verification requests go directly; only the stream is delayed.
  const { counted, requested } = counting({ ...relayed, verify: direct.verify })
  const verifier = start(counted)
  const key = await newKey(server)
  await warm(verifier, key.token, requested)
  relay.hold()
  await revokeKey(server, key)
  const ms = await until('the key is rejected', async () => !(await verifier.verify(key.token)).valid)
  assert.ok(ms < 2_000, `${ms} ms`)
})

test('a stream that was lost briefly resumes at its position, and the cache is kept', async (t) => {
  const gone: string[] = []
  const { server, relay, counted, requested, start } = await setUpVerifier(t, {
    onRevoked: (id) => gone.push(id),
  })
  const verifier = start(counted)
  const [stays, goes] = [await newKey(server), await newKey(server)]
  await warm(verifier, stays.token, requested)
  await warm(verifier, goes.token, requested)
  const before = requested.length
  relay.cut()
  await revokeKey(server, goes)
  relay.mend()
  await until('the missed revocation is received', () => gone.includes(goes.id))
  assert.deepEqual(await verifier.verify(goes.token), { valid: false, reason: 'revoked' })
  assert.equal((await verifier.verify(stays.token)).valid, true)
  assert.equal(requested.length, before)
})

test('a reset clears the cache and calls onReset', async (t) => {
  let resets = 0
  const { server, counted, requested, start } = await setUpVerifier(t, { onReset: () => resets++ })
  let position: string | undefined
  // The first stream is closed and resumed with the position of another database.
  const verifier = start({
    ...counted,
    keyChanges: (after, signal) =>
      counted.keyChanges(after === undefined ? undefined : (position ?? after), signal),
  })
  const key = await newKey(server)
  await warm(verifier, key.token, requested)
  position = '99999-'
  const before = requested.length
  await cutStreams(server)
  await until('the reset', () => resets > 0)
  assert.equal((await verifier.verify(key.token)).valid, true)
  assert.equal(requested.length, before + 1)
})

/** Closes all streams, as for an edge that reads too slowly or is revoked. */
async function cutStreams(server: TestServer): Promise<void> {
  const { store } = server.services
  // A gap in the change log ends the streams.
  await store.transaction((db) => db.updateTable('change_log_head').set({ sequence: 5 }).execute())
  await revokeKey(server, await newKey(server))
}

test('a process that was suspended does not use its cache', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const json = async (...args: string[]) => JSON.parse((await run(t, [...args, '--json'], env)).stdout)
  await json('admin', 'workspace', 'create', 'acme')
  const key = await json('admin', 'key', 'create', '--workspace', 'acme')
  const edge = await json('admin', 'edge', 'create', 'fra-1')
  const serving = await startServing(t, env)
  const { counted, requested } = counting(createControlPlane({ url: serving.url, credential: edge.token }))
  const verifier = startVerifier(counted, { staleAfterMs: 5_500 })
  atEnd(t, verifier.close)
  await warm(verifier, key.token, requested)
  // Blocks this process during the command, and then for longer than staleAfterMs.
  execFileSync(process.execPath, [join(root, 'bin/adit.js'), 'admin', 'key', 'revoke', key.id, '--yes'], {
    env: { ...process.env, ...env },
  })
  Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 6_000)
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'revoked' })
})

test('an edge that reconnects immediately does not delay the shutdown of a server', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const edge = JSON.parse((await run(t, ['admin', 'edge', 'create', 'fra-1', '--json'], env)).stdout)
  const serving = await startServing(t, env)
  const { counted, requested } = counting(createControlPlane({ url: serving.url, credential: edge.token }))
  const verifier = startVerifier(counted)
  atEnd(t, verifier.close)
  await warm(verifier, serving.token as string, requested)
  const began = performance.now()
  serving.child.kill('SIGTERM')
  assert.equal((await serving.ended).code, 0)
  assert.ok(performance.now() - began < 5_000, `${performance.now() - began} ms`)
})

test('the cache is limited: the least recently used key is evicted first', async (t) => {
  const { server, counted, requested, start } = await setUpVerifier(t, { keysMax: 2 })
  const verifier = start(counted)
  const [a, b, c] = [await newKey(server), await newKey(server), await newKey(server)]
  await warm(verifier, a.token, requested)
  await verifier.verify(b.token)
  await verifier.verify(a.token)
  await verifier.verify(c.token)
  requested.length = 0
  for (const key of [a, c, b]) await verifier.verify(key.token)
  assert.deepEqual(requested, [b.token])
})

test('workspace details are revalidated after revalidateAfterMs, and kept if that fails', async (t) => {
  const { server, relay, direct, relayed, start } = await setUpVerifier(t, { revalidateAfterMs: 300 })
  // The stream does not pass the relay, so it survives the cut.
  const { counted, requested } = counting({ ...direct, verify: relayed.verify })
  const verifier = start(counted)
  const { key } = await addWorkspace(server, 'beta')
  await warm(verifier, key.token, requested)
  await provision(server.services, operator, 'beta')
  await until('it is provisioned', async () => {
    const result = await verifier.verify(key.token)
    return result.valid && result.workspace.provisioned
  })
  relay.cut()
  await sleep(400)
  assert.equal((await verifier.verify(key.token)).valid, true)
})

test('concurrent verifications of a key share one request; too many are rejected', async (t) => {
  const { server, relay, direct, relayed, start } = await setUpVerifier(t)
  const { counted, requested } = counting({ ...direct, verify: relayed.verify })
  const verifier = start(counted)
  const key = await newKey(server)
  await warm(verifier, key.token, requested)
  const other = await newKey(server)
  requested.length = 0
  const results = await Promise.all(Array.from({ length: 20 }, () => verifier.verify(other.token)))
  assert.ok(results.every(({ valid }) => valid))
  assert.equal(requested.length, 1)
  relay.hold()
  const flood = Array.from({ length: 1_001 }, (_, index) => verifier.verify(secretFor(String(index))))
  await assert.rejects(flood[1_000] as Promise<unknown>, /1000 keys are being verified already/)
  relay.cut()
  await Promise.allSettled(flood)
})

test('the control plane is not asked about a text that cannot be a key', async (t) => {
  const { server, direct, start } = await setUpVerifier(t)
  const { counted, requested } = counting(direct)
  const verifier = start(counted)
  const { token } = await newKey(server)
  const typo = token.slice(0, -1) + (token.endsWith('0') ? '1' : '0')
  for (const text of ['', 'adit_key', typo, `${token}0`, token.toUpperCase(), 'x'.repeat(10_000)])
    assert.deepEqual(await verifier.verify(text), { valid: false, reason: 'unknown' })
  assert.deepEqual(requested, [])
  assert.equal((await verifier.verify(token)).valid, true)
})

test('onConnected is called when the control plane is first reached, and after each outage', async (t) => {
  let connections = 0
  const { relay, counted, start } = await setUpVerifier(t, { onConnected: () => connections++ })
  relay.cut()
  start(counted)
  await sleep(300)
  assert.equal(connections, 0)
  for (const expected of [1, 2]) {
    relay.mend()
    await until('it is connected', () => connections === expected)
    relay.cut()
  }
})

test('an edge whose credential was revoked rejects every key, and the notice has the reason', async (t) => {
  const { server, edge, counted, requested, notices, start } = await setUpVerifier(t, { staleAfterMs: 800 })
  const verifier = start(counted)
  const key = await newKey(server)
  await warm(verifier, key.token, requested)
  await revokeEdge(server.services, operator, edge.id)
  await until('the key is rejected', () =>
    verifier.verify(key.token).then(
      () => false,
      () => true,
    ),
  )
  await assert.rejects(verifier.verify(key.token), /responded with 401: This edge credential was revoked/)
  await until('the notice has the reason', () =>
    notices.some((line) => line.includes('This edge credential was revoked')),
  )
})

test('an invalid URL or credential is rejected immediately', () => {
  for (const url of ['', 'adit.example.com', 'ftp://x', '/edge'])
    assert.throws(() => createControlPlane({ url, credential: 'adit_edge_x' }), /Invalid control plane URL/)
  for (const credential of ['', 'a b', 'a\nb'])
    assert.throws(() => createControlPlane({ url: 'http://x', credential }), /Invalid edge credential/)
})

/** A well-formed key of this name. */
const secretFor = (name: string) => createSecret('key', () => createHash('sha256').update(name).digest())

/** A fake control plane, for timings that cannot be produced with a real one. */
function scripted() {
  const results = new Map<string, VerifyResult>()
  const names = new Map<string, string>()
  const streams: { push: (event: ServerEvent | Error) => void; after: string | undefined }[] = []
  const requested: { key: string; release: () => void }[] = []
  let holding = false
  const controlPlane: Pick<ControlPlane, 'verify' | 'findHost' | 'keyChanges'> = {
    findHost: async () => ({ found: false }),
    async verify(key) {
      const result = results.get(key) ?? { valid: false as const, reason: 'unknown' as const }
      const held = Promise.withResolvers<void>()
      requested.push({ key: names.get(key) ?? key, release: held.resolve })
      if (holding) await held.promise
      return result
    },
    async keyChanges(after, signal) {
      const waiting: (ServerEvent | Error)[] = []
      let wake = () => {}
      const push = (event: ServerEvent | Error) => {
        waiting.push(event)
        wake()
      }
      streams.push({ after, push })
      signal.addEventListener('abort', () => push(new Error('aborted')))
      return (async function* () {
        for (;;) {
          const next = waiting.shift()
          if (next instanceof Error) throw next
          if (next) yield next
          else await new Promise<void>((resolve) => (wake = resolve))
        }
      })()
    },
  }
  const valid = (key: string): VerifyResult => ({
    valid: true,
    keyId: `tok_${key}`,
    workspace: {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      tunnelBase: 'acme.localhost',
      topic: 't-acme',
    },
  })
  return {
    controlPlane,
    requested,
    streams,
    allow: (key: string) => results.set(secretFor(key), valid(key)),
    revoke: (key: string) => results.set(secretFor(key), { valid: false, reason: 'revoked' }),
    secret(key: string) {
      names.set(secretFor(key), key)
      return secretFor(key)
    },
    hold: () => (holding = true),
    unhold: () => (holding = false),
    emit: (event: ServerEvent | Error) => streams.at(-1)?.push(event),
    revoked: (key: string): ServerEvent => ({
      event: 'revoked',
      data: JSON.stringify({ hash: createHash('sha256').update(secretFor(key)).digest('hex') }),
    }),
  }
}

function scriptedVerifier(t: Test, options: VerifierOptions = {}) {
  const plane = scripted()
  const verifier = startVerifier(plane.controlPlane, options)
  atEnd(t, verifier.close)
  return {
    ...plane,
    verifier,
    verify: async (key: string) => (await verifier.verify(plane.secret(key))).valid,
  }
}

test('a response is cached only if the stream was up to date during the whole request', async (t) => {
  const { allow, hold, unhold, requested, emit, streams, verify } = scriptedVerifier(t)
  allow('a')
  hold()
  const before = verify('a')
  await until('the stream', () => streams.length === 1)
  emit({ id: '1' })
  await sleep(20)
  unhold()
  requested[0]?.release()
  assert.equal(await before, true)
  await verify('a')
  assert.equal(requested.length, 2, 'the first request was sent before the stream was up to date')
  await verify('a')
  assert.equal(requested.length, 2)
  hold()
  allow('b')
  const across = verify('b')
  emit({ event: 'reset', data: '{}' })
  emit({ id: '9' })
  await sleep(20)
  unhold()
  requested[2]?.release()
  await across
  await verify('b')
  assert.equal(requested.length, 4, 'a reset came between request and response')
})

test('a stream that has not caught up yet does not enable the cache', async (t) => {
  const { allow, requested, emit, streams, revoked, verify } = scriptedVerifier(t)
  allow('a')
  await until('the stream', () => streams.length === 1)
  emit(revoked('x'))
  await sleep(20)
  await verify('a')
  await verify('a')
  assert.equal(requested.length, 2)
})

test('a reset keeps received revocations and the position of the stream', async (t) => {
  const { allow, emit, streams, revoked, verify } = scriptedVerifier(t)
  allow('a')
  await until('the stream', () => streams.length === 1)
  emit({ id: '4' })
  emit({ id: '5', ...revoked('a') })
  emit({ event: 'reset', data: '{}' })
  emit(new Error('cut'))
  await until('the next stream', () => streams.length === 2)
  assert.equal(streams[1]?.after, '5')
  emit({ id: '6' })
  await sleep(20)
  assert.equal(await verify('a'), false)
})

test('after a revocation was evicted, responses to earlier requests are rejected', async (t) => {
  const { allow, hold, requested, emit, streams, revoked, verifier } = scriptedVerifier(t, { keysMax: 2 })
  allow('a')
  await until('the stream', () => streams.length === 1)
  emit({ id: '1' })
  hold()
  const inFlight = verifier.verify(secretFor('a'))
  await until('the request', () => requested.length === 1)
  for (const [index, key] of ['a', 'b', 'c', 'd'].entries()) emit({ id: String(index + 2), ...revoked(key) })
  await sleep(20)
  requested[0]?.release()
  await assert.rejects(inFlight, /Too many keys are being revoked/)
})

test('revoked results are cached, unknown ones are not', async (t) => {
  const { revoke, requested, emit, streams, verify } = scriptedVerifier(t)
  revoke('gone')
  await until('the stream', () => streams.length === 1)
  emit({ id: '1' })
  await sleep(20)
  for (const key of ['gone', 'gone', 'never', 'never']) assert.equal(await verify(key), false)
  assert.deepEqual(
    requested.map(({ key }) => key),
    ['gone', 'never', 'never'],
  )
})

test('after an outage longer than staleAfterMs the cache is cleared', async (t) => {
  const { allow, requested, emit, streams, verify } = scriptedVerifier(t, { staleAfterMs: 500 })
  allow('a')
  await until('the stream', () => streams.length === 1)
  emit({ id: '1' })
  await sleep(20)
  await verify('a')
  emit(new Error('cut'))
  await until('the next stream', () => streams.length === 2)
  await sleep(700)
  await until('a stream', () => streams.length >= 3)
  emit({ id: '7' })
  await sleep(20)
  await verify('a')
  assert.equal(requested.length, 2)
})

test('a callback that throws becomes a process warning, and the verifier continues', async (t) => {
  const warnings: string[] = []
  const note = (warning: Error) => warnings.push(warning.message)
  process.on('warning', note)
  atEnd(t, () => process.off('warning', note))
  const { allow, emit, streams, revoked, verify } = scriptedVerifier(t, {
    onRevoked: () => {
      throw new Error('of the embedding program')
    },
    onReset: async () => {
      throw new Error('of it too')
    },
  })
  allow('a')
  await until('the stream', () => streams.length === 1)
  emit({ id: '1' })
  assert.equal(await verify('a'), true)
  emit({ id: '2', ...revoked('a') })
  emit({ event: 'reset', data: '{}' })
  emit({ id: '3' })
  await until('the warnings', () => warnings.length === 2)
  assert.equal(await verify('a'), false)
  assert.equal(streams.length, 1)
})

test('a response of another shape is an error, not a result', async (t) => {
  const bodies: [status: number, body: string][] = [
    [200, 'null'],
    [200, '<html>'],
    [200, '{"valid":"false"}'],
    [200, '{"valid":true}'],
    [401, 'null'],
    [502, '{"details":"x"}'],
  ]
  const server = createServer((_request, response) => {
    const [status, body] = bodies[0] as [number, string]
    response.writeHead(status, { 'content-type': 'application/json' }).end(body)
  })
  const port = await listen(t, server)
  const controlPlane = createControlPlane({ url: `http://127.0.0.1:${port}`, credential: 'adit_edge_x' })
  for (; bodies.length > 0; bodies.shift())
    await assert.rejects(controlPlane.verify('k'), ControlPlaneError, String(bodies[0]))
})
