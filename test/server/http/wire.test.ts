// Malformed, unusual and slow HTTP.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { parseResponses } from '../../support/api/responses.ts'
import { serve } from '../../support/api/server.ts'
import { ambiguousFramings, connectRaw, sendRaw } from '../../support/network/raw.ts'
import { until } from '../../support/until.ts'

const server = await serve({ after }, { engine: 'sqlite' })
const countTokens = async () => (await server.call('GET', '/tokens')).json.tokens.length
const HEAD = 'Host: adit\r\nConnection: close\r\n'

test('a malformed HTTP request is 400 in the usual form, and the connection is closed', async () => {
  const { url, key } = server
  const auth = `Authorization: Bearer ${key.token}\r\n`
  const post = `POST /api/v1/tokens HTTP/1.1\r\n${HEAD}${auth}`
  const requests = {
    'both lengths': `${post}Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n`,
    'two lengths': `${post}Content-Length: 2\r\nContent-Length: 3\r\n\r\n{}`,
    'a negative length': `${post}Content-Length: -1\r\n\r\n`,
    'bare line feeds': `GET /api/v1/workspace HTTP/1.1\nHost: adit\n\n`,
    'a folded header': `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}X-A: b\r\n c\r\n${auth}\r\n`,
    'a space before a colon': `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}X-A : b\r\n\r\n`,
    'a null byte in a header': `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}X-A: \0\r\n\r\n`,
    'no such method': `FETCH /api/v1/workspace HTTP/1.1\r\n${HEAD}\r\n`,
    'another protocol': '\x16\x03\x01\x00\xa5\x01\x00\x00\xa1\x03\x03',
    'too many headers': `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}X-A: ${'x'.repeat(20_000)}\r\n\r\n`,
    'a path too long': `GET /api/v1/${'x'.repeat(20_000)} HTTP/1.1\r\n${HEAD}\r\n`,
    'two hosts': `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}Host: other\r\n${auth}\r\n`,
    'no host': `GET /api/v1/workspace HTTP/1.1\r\nConnection: close\r\n${auth}\r\n`,
  }
  for (const [what, bytes] of Object.entries(requests)) {
    const { status, head, body } = await sendRaw(url, bytes)
    assert.equal(status, 400, `${what}: ${head}`)
    assert.match(head, /access-control-allow-origin: \*/i, what)
    assert.match(head, /x-request-id: \S+/i, what)
    const json = JSON.parse(body)
    assert.equal(json.error, 'invalid_request', what)
    assert.ok(json.details[0].message.length > 0)
  }
})

test('unusual but valid HTTP is served', async () => {
  const { url, key } = server
  const auth = `Authorization: Bearer ${key.token}\r\n`
  const get = 'GET /api/v1/workspace HTTP/1.1\r\n'
  const requests = {
    'a whole URL for a path': `GET ${url}/api/v1/workspace HTTP/1.1\r\n${HEAD}${auth}\r\n`,
    'an unknown expectation': `${get}${HEAD}${auth}Expect: the-unexpected\r\n\r\n`,
    'an upgrade to nothing': `${get}Host: a\r\nConnection: upgrade, close\r\nUpgrade: h2c\r\n${auth}\r\n`,
    'HTTP/1.0': `GET /api/v1/workspace HTTP/1.0\r\nHost: a\r\n${auth}\r\n`,
    'HTTP/1.0 without a host': `GET /api/v1/workspace HTTP/1.0\r\n${auth}\r\n`,
    'an escaped letter in the path': `GET /%61pi/v1/workspace HTTP/1.1\r\n${HEAD}${auth}\r\n`,
  }
  for (const [what, bytes] of Object.entries(requests)) {
    const { status, head, body } = await sendRaw(url, bytes, 2_000)
    assert.equal(status, 200, `${what}: ${head}`)
    assert.match(head, /access-control-allow-origin: \*/i, what)
    assert.equal(JSON.parse(body).slug, 'acme')
  }
})

test('two keys in one request are rejected', async () => {
  const { url, key } = server
  const auth = `Authorization: Bearer ${key.token}\r\n`
  const { status } = await sendRaw(url, `GET /api/v1/workspace HTTP/1.1\r\n${HEAD}${auth}${auth}\r\n`)
  assert.equal(status, 401)
})

test('HTTP methods without an operation are 404', async () => {
  const { url } = server
  for (const method of ['QUERY', 'TRACE', 'PROPFIND', 'CONNECT']) {
    const { status, body } = await sendRaw(url, `${method} /api/v1/usage HTTP/1.1\r\n${HEAD}\r\n`)
    assert.equal(status, 404, method)
    assert.equal(body, '{"error":"not_found"}')
  }
})

test('a request smuggled behind two Content-Lengths is not processed', async () => {
  const { url, key, call } = server
  const inner =
    `DELETE /api/v1/tokens/${key.id} HTTP/1.1\r\nHost: adit\r\n` +
    `Authorization: Bearer ${key.token}\r\n\r\n`
  await sendRaw(
    url,
    `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${key.token}\r\n` +
      `Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n${inner}`,
    1_000,
  )
  assert.equal((await call('GET', '/workspace')).status, 200)
})

test('a Transfer-Encoding other than one "chunked" of HTTP/1.1 is 400, and the connection closes', async () => {
  const { url, key } = server
  const auth = `Host: adit\r\nAuthorization: Bearer ${key.token}\r\n`
  const create = `POST /api/v1/tokens HTTP/1.1\r\n${auth}\r\n`
  const get = `GET /api/v1/workspace HTTP/1.1\r\n${auth}\r\n`
  const before = await countTokens()
  for (const path of ['/api/v1/tokens', '/api/v1/nope', '/nope'])
    for (const [version, header] of ambiguousFramings) {
      const request = `POST ${path} HTTP/${version}\r\n${auth}${header}\r\n\r\n0\r\n\r\n`
      const socket = connectRaw(url)
      socket.write(get + request + create)
      const received = await socket.response
      const { responses, rest } = parseResponses(Buffer.from(received), ['GET', 'POST'])
      assert.deepEqual([responses.map(({ status }) => status), rest.length], [[200, 400], 0], header)
      assert.match(received.slice(received.lastIndexOf('HTTP/1.1 ')), /^connection: close\r$/im, header)
    }
  assert.equal(await countTokens(), before)
})

test('nothing after a request for an upgrade is interpreted, and the connection closes after its response', async () => {
  const { url, key } = server
  const auth = `Host: adit\r\nAuthorization: Bearer ${key.token}\r\n`
  const get = `GET /api/v1/workspace HTTP/1.1\r\n${auth}\r\n`
  const create = `POST /api/v1/tokens HTTP/1.1\r\n${auth}\r\n`
  const upgrade = 'Connection: Upgrade\r\nUpgrade: h2c\r\nContent-Type: application/json\r\n'
  const requests = {
    'without a body': `GET /api/v1/usage HTTP/1.1\r\n${auth}${upgrade}\r\n`,
    'with a body': `POST /api/v1/tokens HTTP/1.1\r\n${auth}${upgrade}Content-Length: 2\r\n\r\n{}`,
    'with a chunked body': `POST /api/v1/tokens HTTP/1.1\r\n${auth}${upgrade}Transfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'without an operation': `POST /nope HTTP/1.1\r\n${auth}${upgrade}Content-Length: 2\r\n\r\n{}`,
  }
  const unfinished = `GET /nope HTTP/1.1\r\n${auth}X-A: `
  const after: Record<string, [string, string]> = {
    'a request in the same packet': [get, ''],
    'a request in the next packet': ['', create],
    'a header value, continued by what looks like a request': [unfinished, create],
    'a malformed request': ['', 'nonsense\r\n\r\n'],
    CONNECT: ['', 'CONNECT adit:443 HTTP/1.1\r\nHost: adit\r\n\r\n'],
  }
  for (const [what, request] of Object.entries(requests))
    for (const [follower, [rest, next]] of Object.entries(after)) {
      const before = await countTokens()
      const socket = connectRaw(url)
      socket.write(get + request + rest)
      await socket.receives('HTTP/1.1 ')
      socket.write(next)
      const received = await socket.response
      const method = request.split(' ', 1)[0] as string
      const { responses, rest: more } = parseResponses(Buffer.from(received), ['GET', method])
      const status = method === 'GET' ? 200 : what === 'without an operation' ? 404 : 201
      const label = `${what}, then ${follower}: ${received}`
      assert.deepEqual([responses.map((one) => one.status), more.length], [[200, status], 0], label)
      assert.match(received.slice(received.lastIndexOf('HTTP/1.1 ')), /^connection: close\r$/im, label)
      const created = (await countTokens()) - before
      assert.equal(created, status === 201 ? 1 : 0, label)
    }
})

test('a request followed by a malformed one gets its response, then the malformed one 400', async () => {
  const { url, key } = server
  const before = await countTokens()
  const request = `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${key.token}\r\n\r\n`
  const { head, body } = await sendRaw(url, `${request}GARBAGE\r\n\r\n`)
  const { responses, rest } = parseResponses(Buffer.from(`${head}\r\n\r\n${body}`), ['POST', 'GARBAGE'])
  assert.deepEqual([responses.map(({ status }) => status), rest.length], [[201, 400], 0])
  const [created, rejected] = responses.map((response) => JSON.parse(response.body))
  assert.deepEqual(Object.keys(created), ['id', 'token', 'label', 'createdAt'])
  assert.equal(rejected.error, 'invalid_request')
  assert.equal(await countTokens(), before + 1)
})

test('every request of a connection gets its own response, and only its own', async () => {
  const { url, key } = server
  const auth = `Host: adit\r\nAuthorization: Bearer ${key.token}\r\n`
  const get = `GET /api/v1/workspace HTTP/1.1\r\n${auth}\r\n`
  const create = `POST /api/v1/tokens HTTP/1.1\r\n${auth}\r\n`
  const badChunk = `POST /api/v1/tokens HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\nzz\r\n`
  const statuses = async (bytes: string) => {
    const { head, body } = await sendRaw(url, bytes, 1_500)
    return [...`${head}\r\n\r\n${body}`.matchAll(/HTTP\/1\.1 (\d{3})/g)].map(([, status]) => Number(status))
  }
  assert.deepEqual(await statuses(get.repeat(32)), Array(32).fill(200))
  assert.deepEqual(await statuses(`${get}CONNECT adit:443 HTTP/1.1\r\nHost: adit\r\n\r\n`), [200, 404])
  assert.equal(
    (await statuses(`POST /api/v1/nope HTTP/1.1\r\n${auth}Transfer-Encoding: chunked\r\n\r\nzz\r\n`)).length,
    1,
  )
  assert.deepEqual(await statuses(badChunk), [400])
  const tooLarge = `GET /api/v1/usage?${'x'.repeat(17_000)} HTTP/1.1\r\n${auth}\r\n`
  assert.deepEqual(await statuses(get + create + tooLarge + get), [200, 201, 400])
  const before = await countTokens()
  assert.deepEqual(await statuses(create + badChunk), [201, 400])
  assert.deepEqual(await statuses(create.repeat(40)), [])
  const created = (await countTokens()) - before
  assert.ok(created <= 2, `${created} created, one response`)
})

test('a pipelined request that expects 100-continue gets it after the responses before it', async () => {
  const { url, key } = server
  const auth = `Host: adit\r\nAuthorization: Bearer ${key.token}\r\n`
  const get = `GET /api/v1/tokens HTTP/1.1\r\n${auth}\r\n`
  const create = `POST /api/v1/tokens HTTP/1.1\r\n${auth}Expect: 100-continue\r\nContent-Length: 2\r\n`
  const socket = connectRaw(url)
  socket.write(`${get}${create}Content-Type: application/json\r\nConnection: close\r\n\r\n`)
  await socket.receives('100 Continue')
  socket.write('{}')
  const { responses, rest } = parseResponses(Buffer.from(await socket.response), ['GET', 'POST'])
  assert.deepEqual([responses.map(({ status }) => status), rest.length], [[200, 201], 0])
})

test('a response in progress is sent whole although CONNECT follows', async () => {
  const { url } = server
  const { hostname, port } = new URL(url)
  const socket = connect(Number(port), hostname)
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  socket.pause()
  const get = 'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n'
  socket.write(`${get}CONNECT adit:443 HTTP/1.1\r\nHost: adit\r\n\r\n`)
  await until('the response waits for its reader', () => socket.bytesRead > 0)
  socket.resume()
  await once(socket, 'close')
  const { responses, rest } = parseResponses(Buffer.concat(chunks), ['GET', 'CONNECT'])
  assert.deepEqual([responses.map(({ status }) => status), rest.length], [[200, 404], 0])
})

test('clients that send endlessly and read nothing use little memory and block no others', async () => {
  const { url, call } = server
  const before = process.memoryUsage().rss
  const one = 'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n'
  const few = Buffer.from(one.repeat(30))
  const many = Buffer.from(one.repeat(2_000))
  const { hostname, port } = new URL(url)
  const sockets = Array.from({ length: 100 }, (_, index) => {
    const socket = connect(Number(port), hostname)
    socket.on('error', () => {})
    socket.pause()
    socket.write(index % 2 ? few : many)
    return socket
  })
  for (let round = 0; round < 10; round++) {
    assert.equal((await call('GET', '/workspace')).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 50))
  }
  for (const socket of sockets) socket.destroy()
  const grownMiB = (process.memoryUsage().rss - before) / 2 ** 20
  assert.ok(grownMiB < 250, `grew by ${grownMiB} MiB`)
})

test('slow senders are disconnected in time while others are served', { timeout: 60_000 }, async () => {
  const { url, key, call } = server
  const began = performance.now()
  const silent = sendRaw(url, '', 30_000)
  const slow = Promise.all([
    sendRaw(url, 'GET /api/v1/workspace HTTP/1.1\r\nHost: adit\r\nX-Slow: ', 30_000),
    sendRaw(
      url,
      `POST /api/v1/tokens HTTP/1.1\r\nHost: adit\r\nAuthorization: Bearer ${key.token}\r\n` +
        'Content-Type: application/json\r\nContent-Length: 100\r\n\r\n{"label":',
      30_000,
    ),
  ])
  let disconnected = false
  void slow.then(() => {
    disconnected = true
  })
  while (!disconnected) {
    assert.equal((await call('GET', '/workspace')).status, 200)
    await new Promise((resolve) => setTimeout(resolve, 250))
  }
  for (const { status } of await slow) assert.equal(status, 400)
  // No response bytes: they could be mistaken for the response to a request that is sent at that moment.
  assert.equal((await silent).head, '')
  assert.ok(performance.now() - began < 25_000, 'disconnected too late')
})
