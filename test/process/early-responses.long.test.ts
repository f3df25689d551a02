// Requests that are rejected before their body has arrived: the client must be able to read the response.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { text } from 'node:stream/consumers'
import { after, test } from 'node:test'
import type { Test } from '../support/cleanup.ts'
import { createDatabase } from '../support/databases/create.ts'
import { collectText } from '../support/network/collect.ts'
import { sendRaw } from '../support/network/raw.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const ROUNDS = 4
const CONCURRENT = 4
const UNKNOWN_KEY = `adit_${'x'.repeat(49)}`

const start = async (t: Test, env: Record<string, string> = {}) =>
  startServing(t, {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_LOG_LEVEL: 'silent',
    ...env,
  })

const shared = await start({ after })

/** It closes each connection after a response, although the client did not request it. */
async function startStopping(t: Test) {
  const serving = await start(t, { ADIT_STOP_DELAY: '300' })
  serving.child.kill('SIGTERM')
  await until('/readyz returns 503', async () => (await fetch(`${serving.url}/readyz`)).status === 503)
  return serving
}

/** A body of unknown length, which is sent in chunks. */
const chunked = (bytes: number) => new Blob([Buffer.alloc(bytes, 'x')]).stream()

/** Sends bodies of each size, with a known length and in chunks, to operations that reject them. */
async function assertReadable(
  { url, token }: { url: string; token?: string },
  rounds: number,
): Promise<void> {
  const cases: [status: number, path: string, key: string][] = [
    [400, '/api/v1/tokens', token as string],
    [401, '/api/v1/tokens', UNKNOWN_KEY],
    [404, '/api/v1/nope', token as string],
  ]
  const headers = (key: string) => ({ authorization: `Bearer ${key}`, 'content-type': 'application/json' })
  for (const bytes of [100_000, 1_000_000, 8_000_000])
    for (const [expected, path, key] of cases)
      for (const body of [() => Buffer.alloc(bytes, 'x'), () => chunked(bytes)]) {
        const post = async () => {
          const init = { method: 'POST', headers: headers(key), body: body(), duplex: 'half' as const }
          const response = await fetch(url + path, init)
          return [response.status, ((await response.json()) as { error: string }).error.length > 0]
        }
        for (let round = 0; round < rounds; round += CONCURRENT) {
          const outcomes = await Promise.all(Array.from({ length: CONCURRENT }, post))
          for (const outcome of outcomes) assert.deepEqual(outcome, [expected, true], `${bytes} to ${path}`)
        }
      }
}

test('fetch reads the response to a body of any size that is rejected early', async () => {
  await assertReadable(shared, ROUNDS)
})

test('fetch reads the response also while the server drains and closes connections', async (t) => {
  await assertReadable(await startStopping(t), CONCURRENT)
})

test('a client with Connection: close or HTTP/1.0 reads the response to a rejected body', async () => {
  const { url, token } = shared
  const body = Buffer.alloc(4_000_000, 'x')
  const head = (version: string) =>
    `POST /api/v1/tokens HTTP/${version}\r\nHost: adit\r\nConnection: close\r\n` +
    `Content-Type: application/json\r\nContent-Length: ${body.length}\r\n`
  for (let round = 0; round < ROUNDS; round++)
    for (const version of ['1.1', '1.0'])
      for (const [key, expected] of [
        [token, 400],
        [UNKNOWN_KEY, 401],
      ]) {
        const request = `${head(version)}Authorization: Bearer ${key}\r\n\r\n`
        const { status } = await sendRaw(url, Buffer.concat([Buffer.from(request), body]))
        assert.equal(status, expected, `HTTP/${version}`)
      }
})

test('a client whose headers are too large or malformed reads the response', async () => {
  const { url } = shared
  for (let round = 0; round < ROUNDS; round++) {
    const large = `GET /healthz HTTP/1.1\r\nHost: adit\r\nX-Large: ${'x'.repeat(2_000_000)}\r\n\r\n`
    assert.equal((await sendRaw(url, large)).status, 400)
    assert.equal((await sendRaw(url, `GARBAGE${'x'.repeat(2_000_000)}`)).status, 400)
    const connected = await sendRaw(url, `CONNECT x:1 HTTP/1.1\r\n\r\n${'x'.repeat(2_000_000)}`)
    assert.equal(connected.status, 404)
  }
})

test('a client that sends its next request while the server closes reads the response', async (t) => {
  const { hostname, port } = new URL((await startStopping(t)).url)
  const request = 'GET /healthz HTTP/1.1\r\nHost: adit\r\n\r\n'
  for (let round = 0; round < ROUNDS; round++) {
    const socket = connect({ port: Number(port), host: hostname, allowHalfOpen: true })
    const errors: unknown[] = []
    socket.on('error', (error) => errors.push(error))
    const response = collectText(socket)
    socket.write(request)
    await once(socket, 'end')
    assert.match(response(), /^HTTP\/1\.1 200 .*\r\nconnection: close\r\n/is)
    for (let part = 0; part < 5; part++) {
      socket.write(request)
      await new Promise((resolve) => setTimeout(resolve, 2))
    }
    assert.deepEqual(errors, [], 'the connection was reset')
    socket.end()
  }
})

test('a rejected body of known, moderate length does not close the connection', async () => {
  const { url, token } = shared
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const received = text(socket)
  const authorization = `Authorization: Bearer ${token}\r\n`
  const body = `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\n${authorization}\r\n`.repeat(5_000)
  socket.write(`POST /api/v1/nope HTTP/1.1\r\nHost: adit\r\nContent-Length: ${body.length}\r\n\r\n`)
  await once(socket, 'readable')
  socket.write(body)
  socket.write(`GET /api/v1/tokens HTTP/1.1\r\nHost: adit\r\n${authorization}Connection: close\r\n\r\n`)
  const responses = await received
  const statuses = [...responses.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
  assert.deepEqual(statuses, [404, 200])
  assert.equal(JSON.parse(responses.slice(responses.lastIndexOf('{"tokens"'))).tokens.length, 1)
})

test('a rejected client that sends endlessly is disconnected, its bytes are discarded', async () => {
  const { url, token } = shared
  const { hostname, port } = new URL(url)
  const create = `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${token}\r\n\r\n`
  const rejected = {
    'a long body': 'POST /api/v1/nope HTTP/1.1\r\nHost: adit\r\nContent-Length: 100000000\r\n\r\n',
    'a body without a length':
      'POST /api/v1/nope HTTP/1.1\r\nHost: adit\r\nTransfer-Encoding: chunked\r\n\r\n',
    'an empty body in chunks':
      'POST /api/v1/nope HTTP/1.1\r\nHost: adit\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n',
    CONNECT: 'CONNECT x:1 HTTP/1.1\r\n\r\n',
    garbage: 'GARBAGE\r\n\r\n',
  }
  for (const [what, opening] of Object.entries(rejected)) {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.resume()
    let closed = false
    socket.once('close', () => {
      closed = true
    })
    socket.write(opening)
    const more = Buffer.from(create.repeat(500))
    const write = () => {
      while (!closed && socket.write(more));
    }
    socket.on('drain', write)
    write()
    await until(`${what} is disconnected`, () => closed)
    // Discarded by the server, or in the buffers of the kernel.
    const { bytesWritten } = socket
    assert.ok(bytesWritten < 40_000_000, `${what}: ${bytesWritten} bytes`)
  }
  const listed = await fetch(`${url}/api/v1/tokens`, { headers: { authorization: `Bearer ${token}` } })
  assert.equal(((await listed.json()) as { tokens: unknown[] }).tokens.length, 1)
})
