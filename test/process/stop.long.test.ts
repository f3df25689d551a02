// Shutdown: requests in progress are completed, pending writes are flushed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { REPEATED_SIGNAL_MS } from '../../src/cli/server/shutdown.ts'
import { hashSecret } from '../../src/lib/credentials/secret.ts'
import { caller } from '../support/api/server.ts'
import { atEnd } from '../support/cleanup.ts'
import { createDatabase, createFolder, createMigratedDatabase, engines } from '../support/databases/create.ts'
import { collectText } from '../support/network/collect.ts'
import { root, run, startServing } from '../support/processes/process.ts'
import { startProgram } from '../support/processes/program.ts'
import { until } from '../support/until.ts'

for (const engine of engines) {
  test(`${engine}: SIGTERM under load fails no request in progress, and exits with 0`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, engine), ADIT_LOG_LEVEL: 'silent' }
    await run(t, ['admin', 'workspace', 'create', 'acme'], env)
    const token = (await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], env)).stdout.trim()
    const serving = await startServing(t, env)
    const call = caller(serving.api, token)
    const acknowledged: string[] = []
    let stopping = false
    const clients = Array.from({ length: 8 }, async () => {
      for (;;) {
        const response = await call('POST', '/tokens').catch((error: Error) => error)
        if (response instanceof Error) {
          // The port is closed. If the request was executed nevertheless, its unacknowledged key shows below.
          assert.ok(stopping, `before the stop: ${response}`)
          return
        }
        assert.equal(response.status, 201)
        acknowledged.push(response.json.id)
      }
    })
    await until('keys are created', () => acknowledged.length >= 50)
    stopping = true
    serving.child.kill('SIGTERM')
    await Promise.all(clients)
    const { code } = await serving.ended
    assert.equal(code, 0)

    const listed = JSON.parse((await run(t, ['admin', 'key', 'list', '--json'], env)).stdout)
    const ids = new Set(listed.map((key: { id: string }) => key.id))
    for (const id of acknowledged) assert.ok(ids.has(id))
    assert.equal(listed.length, acknowledged.length + 1, 'a key was created without an acknowledgement')
    // The last use of the key was still in memory at the stop.
    assert.ok(listed.at(-1).lastUsedAt)
  })
}

test('a request that is partially sent at the stop still gets its response', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const serving = await startServing(t, env)
  const { hostname, port } = new URL(serving.url)
  const socket = connect(Number(port), hostname)
  const received = collectText(socket)
  const closed = new Promise((resolve) => socket.once('close', resolve))
  const body = '{"label":"half"}'
  socket.write(
    `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${serving.token}\r\n` +
      'Content-Type: application/json\r\nExpect: 100-continue\r\n' +
      `Content-Length: ${body.length}\r\n\r\n${body.slice(0, 5)}`,
  )
  await until('the server has the headers', () => received().includes('\r\n\r\n'))
  serving.child.kill('SIGTERM')
  await serving.waitFor(/stopping/, 'stderr')
  socket.write(body.slice(5))
  await closed
  assert.match(received(), /^HTTP\/1\.1 100 Continue\r\n\r\nHTTP\/1\.1 201/)
  assert.match(received(), /connection: close/i)
  assert.equal((await serving.ended).code, 0)
})

test('rejected clients that keep their connections open do not delay a stop', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const serving = await startServing(t, env)
  const { hostname, port } = new URL(serving.url)
  const large = 'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n'
  const stalled = [
    `${large.repeat(30)}CONNECT x:1 HTTP/1.1\r\n\r\n`,
    'CONNECT x:1 HTTP/1.1\r\n\r\n',
    'CONNECT x:1 HTTP/1.1\r\nHost: x\r\nContent-Length: 10\r\n\r\n12345',
    'POST /api/v1/nope HTTP/1.1\r\nHost: adit\r\nContent-Length: 100000000\r\n\r\n',
    'GARBAGE\r\n\r\n',
  ]
  for (const bytes of stalled) {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    socket.on('error', () => {})
    atEnd(t, () => socket.destroy())
    await new Promise((resolve) => socket.write(bytes, resolve))
    await once(socket, 'readable')
  }
  serving.child.kill('SIGTERM')
  const { code } = await Promise.race([
    serving.ended,
    sleep(30_000, { code: 'still running' }, { ref: false }),
  ])
  assert.equal(code, 0)
})

test('a Ctrl-C that npm forwards a second time counts once', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'silent' }
  const serving = await startServing(t, env)
  await caller(serving.api, serving.token as string)('GET', '/workspace')
  serving.child.kill('SIGINT')
  await sleep(30)
  assert.equal((await serving.stop('SIGINT')).code, 0)
  const [key] = JSON.parse((await run(t, ['admin', 'key', 'list', '--json'], env)).stdout)
  assert.ok(key.lastUsedAt, 'pending writes were flushed')
})

test('/readyz is 503 as soon as a stop is requested', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const serving = await startServing(t, env)
  const { hostname, port } = new URL(serving.url)
  const socket = connect(Number(port), hostname)
  const response = text(socket)
  await once(socket, 'connect')
  serving.child.kill('SIGTERM')
  await serving.waitFor(/stopping/, 'stderr')
  socket.write('GET /readyz HTTP/1.1\r\nHost: adit\r\n\r\n')
  assert.match(await response, /^HTTP\/1\.1 503 .*"error":"unavailable"/s)
  assert.equal((await serving.ended).code, 0)
})

test('during the stop delay requests and streams are served; a second signal ends it', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_LOG_LEVEL: 'silent',
    ADIT_STOP_DELAY: '300',
  }
  const serving = await startServing(t, env)
  const edge = JSON.parse((await run(t, ['admin', 'edge', 'create', 'fra-1', '--json'], env)).stdout)
  const call = caller(serving.api, serving.token as string)
  const key = (await call('POST', '/tokens')).json
  const stream = await fetch(`${serving.url}/edge/v1/key-changes`, {
    headers: { authorization: `Bearer ${edge.token}` },
  })
  let received = ''
  const streamEnded = (async () => {
    for await (const part of stream.body as ReadableStream<Uint8Array>) received += Buffer.from(part)
  })()

  serving.child.kill('SIGTERM')
  // The same signal, forwarded by npm.
  setTimeout(() => serving.child.kill('SIGTERM'), 30)
  await until('/readyz returns 503', async () => (await fetch(`${serving.url}/readyz`)).status === 503)
  await sleep(REPEATED_SIGNAL_MS + 200)
  const revoked = await call('DELETE', `/tokens/${key.id}`)
  assert.deepEqual([revoked.status, revoked.headers.get('connection')], [200, 'close'])
  await until('the stream has the revocation', () => received.includes(hashSecret(key.token)))
  assert.equal(serving.child.exitCode, null)

  assert.equal((await serving.stop()).code, 0)
  await streamEnded
})

test('an unread log delays neither requests nor a stop', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'trace' }
  const serving = await startServing(t, env)
  serving.child.stderr?.pause()
  const call = caller(serving.api, serving.token as string)
  for (let round = 0; round < 100; round++)
    await Promise.all(
      Array.from({ length: 20 }, async () => assert.equal((await call('GET', '/workspace')).status, 200)),
    )
  serving.child.kill('SIGTERM')
  await once(serving.child, 'exit')
  serving.child.stderr?.resume()
  const [key] = JSON.parse((await run(t, ['admin', 'key', 'list', '--json'], env)).stdout)
  assert.ok(key.lastUsedAt, 'pending writes were flushed')
})

test('when npm is stopped, the server that it started stops too', async (t) => {
  const folder = createFolder(t)
  const npm = startProgram(t, 'npm', ['start', '--silent'], {
    cwd: root,
    detached: true,
    env: {
      ...process.env,
      ADIT_DATABASE_URL: `sqlite:${folder}/adit.db`,
      ADIT_PORT: '0',
      ADIT_LOG_LEVEL: 'silent',
    },
  })
  await npm.waitFor(/Documentation +http/)
  const url = /http:\/\/127\.0\.0\.1:\d+/.exec(npm.output())?.[0] as string
  assert.equal((await fetch(`${url}/healthz`)).status, 200)
  npm.child.kill('SIGTERM')
  const isServing = () =>
    fetch(`${url}/healthz`).then(
      () => true,
      () => false,
    )
  await until('the server stops', async () => !(await isServing()))
  await npm.ended
})
