// Informational responses (1xx) of the local server, and 100 Continue among them.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { startRawLocalServer } from '../../../support/edges/raw-local-server.ts'
import { startStandaloneEdge } from '../../../support/edges/standalone-edge.ts'
import { connectClient } from '../../../support/edges/tunneled.ts'
import { openTunnel } from '../../../support/edges/tunnels.ts'
import { until } from '../../../support/until.ts'

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const [key = ''] = keys
const local = await startRawLocalServer({ after })
const open = (name: string, flags: string[] = []) =>
  openTunnel({ after }, { edge, key, port: local.port, name, flags })
const { host } = await open('app')

// The local server closes each connection, so that every request has its own.
const OK = 'HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 3\r\n\r\nok\n'
const HINT = 'HTTP/1.1 103 Early Hints\r\nLink: </a.css>; rel=preload\r\n\r\n'
const get = (headers = '', version = '1.1') => `GET / HTTP/${version}\r\nHost: ${host}\r\n${headers}\r\n`
const post = (headers = '', version = '1.1', to = host) =>
  `POST / HTTP/${version}\r\nHost: ${to}\r\nExpect: 100-continue\r\n${headers}\r\n`
const statuses = (received: string) =>
  [...received.matchAll(/^HTTP\/1\.1 (\d{3})/gm)].map(([, status]) => Number(status))
const untilReceived = (client: { received(): string }, text: string) =>
  until(`the client receives ${text}`, () => client.received().includes(text))

test('102 and 103 arrive before the response, with the headers that the local server sent', async () => {
  const client = connectClient(edge.port, get())
  const { socket } = await local.next()
  socket.write('HTTP/1.1 102 Processing\r\n\r\n')
  await untilReceived(client, 'HTTP/1.1 102 Processing\r\n\r\n')
  socket.write(HINT)
  await untilReceived(client, HINT)
  socket.write('HTTP/1.1 103 Early Hints\r\nLink: </b.js>\r\nX-Mark: é\r\nlink: </c.js>\r\n\r\n')
  await untilReceived(client, '103 Early Hints\r\nLink: </b.js>\r\nX-Mark: Ã©\r\nlink: </c.js>\r\n\r\n')
  socket.write(OK)
  await untilReceived(client, '\r\n\r\nok')
  assert.deepEqual(statuses(client.received()), [102, 103, 103, 200])
  client.socket.destroy()
})

test('headers of an informational response that concern a connection, frame a body or set cookies are removed', async () => {
  const client = connectClient(edge.port, get())
  const { socket } = await local.next()
  const removed = [
    ...['Connection: close, X-Hop', 'X-Hop: 1', 'Keep-Alive: timeout=1', 'Upgrade: h2c', 'Trailer: X-A'],
    ...[
      'Content-Length: 5',
      'Set-Cookie: a=1',
      'Set_Cookie: a=1',
      'set-cookie2: a=1',
      'Proxy-Authenticate: x',
    ],
  ]
  socket.write(`HTTP/1.1 103 Early Hints\r\n${removed.join('\r\n')}\r\nLink: </a>\r\n\r\n`)
  await untilReceived(client, 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n')
  socket.write('HTTP/1.1 103 Early Hints\r\nTransfer-Encoding: chunked\r\n\r\n')
  await untilReceived(client, 'HTTP/1.1 103 Early Hints\r\n\r\n')
  socket.write(OK)
  await untilReceived(client, '\r\n\r\nok')
  // The connection is as usable as without them.
  client.socket.write(get())
  ;(await local.next()).socket.write(OK)
  await until('the next response arrives', () => statuses(client.received()).length === 4)
  client.socket.destroy()
})

test('a visitor with HTTP/1.0, or a proxy that names it in Via, gets the last response only', async () => {
  for (const request of [
    get('', '1.0'),
    get('Via: 1.0 nginx\r\n'),
    get('Via: 1.1 a, HTTP/1.0 b\r\n'),
    get('Connection: Upgrade\r\nUpgrade: websocket\r\n'),
  ]) {
    const client = connectClient(edge.port, request)
    const { socket } = await local.next()
    socket.write(`HTTP/1.1 102 Processing\r\n\r\n${HINT}${OK}`)
    await untilReceived(client, '\r\n\r\nok')
    assert.deepEqual(statuses(client.received()), [200], request)
    client.socket.destroy()
    socket.destroy()
  }
  const client = connectClient(edge.port, get('Via: 1.1 1.0.example, 2.0 b\r\n'))
  ;(await local.next()).socket.write(HINT + OK)
  await untilReceived(client, '\r\n\r\nok')
  assert.deepEqual(statuses(client.received()), [103, 200])
  client.socket.destroy()
})

test('informational responses are limited to 32, and to the size of one head', async () => {
  const large = `HTTP/1.1 103 Early Hints\r\nX-Large: ${'x'.repeat(9_000)}\r\n\r\n`
  for (const [informational, expected] of [
    [HINT.repeat(32), [...Array(32).fill(103), 200]],
    [HINT.repeat(33), [...Array(32).fill(103), 502]],
    [large.repeat(20), 502],
  ] as const) {
    const client = connectClient(edge.port, get('Connection: close\r\n'))
    ;(await local.next()).socket.write(informational + OK)
    await client.closed
    const received = statuses(client.received())
    if (Array.isArray(expected)) assert.deepEqual(received, expected)
    else assert.equal(received.at(-1), expected)
  }
})

test('pipelined requests get their informational responses in order', async () => {
  const client = connectClient(edge.port, get('X: 1\r\n') + get('X: 2\r\n'))
  for (let request = 1; request <= 2; request += 1) {
    const { socket, received } = await local.next()
    assert.match(received(), new RegExp(`X: ${request}`))
    socket.write(HINT + OK)
  }
  await until('both responses arrive', () => statuses(client.received()).length === 4)
  assert.deepEqual(statuses(client.received()), [103, 200, 103, 200])
  client.socket.destroy()
})

test('the body of a request that expects 100-continue comes after the 100 of the local server', async () => {
  for (const framing of ['Content-Length: 4\r\n', 'Transfer-Encoding: chunked\r\n']) {
    const client = connectClient(edge.port, post(framing))
    const { socket, received, receives } = await local.next()
    assert.match(received(), /\r\nExpect: 100-continue\r\n/)
    assert.equal(client.received(), '')
    socket.write('HTTP/1.1 100 Whatever\r\nX-Mark: 1\r\n\r\n')
    await untilReceived(client, 'HTTP/1.1 100 Continue\r\n\r\n')
    const body = framing.includes('chunked') ? '4\r\nbody\r\n0\r\n\r\n' : 'body'
    client.socket.write(body)
    await receives(`\r\n\r\n${body}`)
    socket.write(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)
    await untilReceived(client, '\r\n\r\nok')
    assert.deepEqual(statuses(client.received()), [100, 200])
    // The connection can be used again.
    assert.doesNotMatch(client.received(), /Connection: close/i)
    client.socket.destroy()
  }
})

test('a visitor that expects 100-continue gets 417, or any other response, without having sent the body', async () => {
  for (const status of ['417 Expectation Failed', '401 Unauthorized', '200 OK']) {
    const client = connectClient(edge.port, post('Content-Length: 4\r\n'))
    const { socket, received } = await local.next()
    socket.write(`HTTP/1.1 ${status}\r\nContent-Length: 2\r\n\r\nno`)
    // The body may still come, and must not be parsed as a request.
    assert.equal(await client.closed, 'end')
    assert.match(client.received(), new RegExp(`^HTTP/1.1 ${status}\r\n`))
    assert.match(client.received(), /\r\nConnection: close\r\n/i)
    assert.match(received(), /\r\n\r\n$/)
    client.socket.destroy()
  }
})

test('a visitor need not wait for 100, and an interrupted body reaches no other request', async () => {
  const client = connectClient(edge.port, post('Content-Length: 4\r\n'))
  const first = await local.next()
  client.socket.write('body')
  await first.receives('\r\n\r\nbody')
  first.socket.write(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)
  await untilReceived(client, '\r\n\r\nok')
  assert.deepEqual(statuses(client.received()), [100, 200])

  const leaving = connectClient(edge.port, post('Content-Length: 4\r\n'))
  const second = await local.next()
  leaving.socket.destroy()
  await until('the local server notices it', () => second.socket.destroyed)
  client.socket.destroy()
})

test('a request of HTTP/1.0, without a body or with another expectation does not wait for 100', async () => {
  for (const [request, body] of [
    [post('Content-Length: 4\r\n', '1.0'), 'body'],
    [post(), ''],
    [post('Content-Length: 4\r\n').replace('100-continue', 'something'), 'body'],
  ] as const) {
    const client = connectClient(edge.port, request + body)
    const { socket, received, receives } = await local.next()
    await receives(`\r\n\r\n${body}`)
    assert.doesNotMatch(received(), /expect/i)
    // A 100 that nobody expects.
    socket.write(`HTTP/1.1 100 Continue\r\n\r\n${OK}`)
    await untilReceived(client, '\r\n\r\nok')
    assert.deepEqual(statuses(client.received()), [200])
    client.socket.destroy()
  }
})

test('access rules reject a request that expects 100-continue before the local server gets it', async () => {
  const protectedTunnel = await open('protected', ['--basic-auth', 'ann:a long password'])
  const before = local.count()
  const client = connectClient(edge.port, post('Content-Length: 4\r\n', '1.1', protectedTunnel.host))
  assert.equal(await client.closed, 'end')
  assert.deepEqual(statuses(client.received()), [401])
  assert.equal(local.count(), before)
  client.socket.destroy()

  const authorization = `Authorization: Basic ${Buffer.from('ann:a long password').toString('base64')}\r\n`
  const allowed = connectClient(
    edge.port,
    post(`${authorization}Content-Length: 4\r\n`, '1.1', protectedTunnel.host),
  )
  const { socket, received, receives } = await local.next()
  assert.match(received(), /\r\n\r\n$/)
  socket.write('HTTP/1.1 100 Continue\r\n\r\n')
  await untilReceived(allowed, 'HTTP/1.1 100 Continue\r\n\r\n')
  allowed.socket.write('body')
  await receives('body')
  allowed.socket.destroy()
})

test('an unknown host rejects a request that expects 100-continue', async () => {
  const client = connectClient(edge.port, post('Content-Length: 4\r\n', '1.1', 'x.acme.tunnels.test'))
  assert.equal(await client.closed, 'end')
  assert.deepEqual(statuses(client.received()), [404])
  client.socket.destroy()
})
