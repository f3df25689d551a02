// Trailers of chunked bodies, and the header that announces them.
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
const { host } = await openTunnel({ after }, { edge, key, port: local.port, name: 'app' })

const CHUNKED = 'Transfer-Encoding: chunked\r\n'
const request = (headers = '', line = 'GET / HTTP/1.1') =>
  `${line}\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n`
/** The local server closes each connection, so that every request has its own. */
const response = (headers: string, body: string, status = '200 OK') =>
  `HTTP/1.1 ${status}\r\nConnection: close\r\n${headers}\r\n${body}`

/** What the client and the local server received. */
async function exchange(sent: string, respond: string, end = '\r\n\r\n') {
  const client = connectClient(edge.port, sent)
  const { socket, received, receives } = await local.next()
  await receives(end)
  socket.write(respond, 'latin1')
  await client.closed
  client.socket.destroy()
  return { client: client.received(), local: received() }
}

test('trailers of a response arrive after its body, and Trailer before it', async () => {
  const { client } = await exchange(
    request(),
    response(
      `${CHUNKED}Trailer: X-Mark, Server-Timing\r\ntrailer: X-Other\r\n`,
      '2\r\nok\r\n0\r\nX-Mark: a\r\nServer-Timing: b;dur=1\r\nx-mark: c\r\nX-Unannounced: \xe9\r\n\r\n',
    ),
  )
  assert.match(client, /\r\nTrailer: X-Mark, Server-Timing, X-Other\r\n/)
  const trailers = 'X-Mark: a\r\nServer-Timing: b;dur=1\r\nx-mark: c\r\nX-Unannounced: \xe9\r\n\r\n'
  assert.ok(client.endsWith(`\r\n\r\n2\r\nok\r\n0\r\n${trailers}`), client)
})

test('trailers of a request reach the local server after its body, and Trailer before it', async () => {
  const body = '2\r\nhi\r\n0\r\nX-Mark: a\r\nx-mark: b\r\n\r\n'
  const sent = request(`${CHUNKED}Trailer: X-Mark\r\n`, 'POST / HTTP/1.1') + body
  const { local } = await exchange(sent, response('Content-Length: 0\r\n', ''), body)
  assert.match(local, /\r\nTrailer: X-Mark\r\n/)
  assert.ok(local.endsWith(`\r\n\r\n${body}`), local)
})

const FORBIDDEN = [
  ...['Content-Length', 'Content-Encoding', 'Content-Type', 'Transfer-Encoding', 'Host', 'Authorization'],
  ...['Set-Cookie', 'Set_Cookie', 'Cookie', 'Cache-Control', 'Location', 'Trailer', 'Connection', 'TE'],
  ...['X-Forwarded-For', 'X_Forwarded_For', 'Proxy-Authorization', 'If-Match', 'Keep-Alive', 'Upgrade'],
]
const ALLOWED = ['X-Mark', 'Digest', 'Content-Digest', 'Content-MD5', 'ETag', 'grpc-status', 'Server-Timing']

test('fields that frame, route or authorize a message are no trailers, nor are they announced', async () => {
  const names = [...FORBIDDEN, ...ALLOWED]
  const allowed = ALLOWED.join(', ')
  const fields = (all: string[]) => all.map((name) => `${name}: 1\r\n`).join('')
  // A parser would reject these two as trailers.
  const sendable = names.filter((name) => !/^(Content-Length|Transfer-Encoding)$/.test(name))
  const announced = `${CHUNKED}Trailer: ${names.join(',')}\r\n`
  const body = `1\r\nx\r\n0\r\n${fields(sendable)}\r\n`
  const { client, local } = await exchange(
    request(announced, 'POST / HTTP/1.1') + body,
    response(announced, body),
    `${fields(ALLOWED)}\r\n`,
  )
  for (const received of [client, local]) {
    assert.match(received, new RegExp(`\r\nTrailer: ${allowed}\r\n`))
    assert.ok(received.endsWith(`1\r\nx\r\n0\r\n${fields(ALLOWED)}\r\n`), received)
  }
})

test('Trailer is removed from messages that cannot have trailers', async () => {
  const announced = 'Trailer: X-Mark\r\n'
  const chunked = CHUNKED + announced
  const body = '2\r\nok\r\n0\r\nX-Mark: 1\r\n\r\n'
  for (const [sent, respond] of [
    [request('', 'HEAD / HTTP/1.1'), response(chunked, '')],
    [request('', 'GET / HTTP/1.0'), response(chunked, body)],
    [request(), response(`${announced}Content-Length: 2\r\n`, 'ok')],
    [request(), response(chunked, '', '204 No Content')],
    [request(), response(chunked, '', '304 Not Modified')],
    [request(), response(`${CHUNKED}Trailer: Set-Cookie,,\r\n`, body)],
    [
      request('Connection: Upgrade\r\nUpgrade: x\r\n').replace('Connection: close\r\n', ''),
      response(chunked, body),
    ],
    [request(announced), response('Content-Length: 2\r\n', 'ok')],
    [
      `${request(`${announced}Content-Length: 1\r\n`, 'POST / HTTP/1.1')}x`,
      response('Content-Length: 2\r\n', 'ok'),
    ],
  ] as const) {
    const { client, local } = await exchange(sent, respond)
    assert.match(client, /^HTTP\/1\.1 (200|204|304) /, sent)
    assert.doesNotMatch(client + local, /\r\nTrailer:/i, sent)
  }
})

test('a local server learns whether the visitor accepts trailers', async () => {
  for (const [te, expected] of [
    ['TE: trailers\r\n', true],
    ['TE: gzip;q=0.5, Trailers;q=1\r\n', true],
    ['TE: gzip\r\nTE: trailers\r\n', true],
    ['TE: gzip\r\n', false],
    ['TE: x-trailers\r\n', false],
    ['', false],
  ] as const) {
    const { local } = await exchange(request(te), response('Content-Length: 0\r\n', ''))
    const connection = expected
      ? 'Connection: keep-alive, TE\r\nTE: trailers\r\n'
      : 'Connection: keep-alive\r\n'
    assert.ok(local.endsWith(`${connection}\r\n`), local)
    assert.equal(local.match(/^TE:/gim)?.length ?? 0, expected ? 1 : 0)
  }
})

test('trailers are bounded in size and number', async () => {
  const many = (count: number) => `0\r\n${'a: \r\n'.repeat(count)}\r\n`
  const large = (bytes: number) => `0\r\nX-Large: ${'x'.repeat(bytes)}\r\n\r\n`
  for (const [body, isForwarded] of [
    [many(1_000), true],
    [large(60_000), true],
    [many(1_001), false],
    [large(100_000), false],
  ] as const) {
    const { client } = await exchange(request(), response(CHUNKED, body))
    assert.equal(client.endsWith(body), isForwarded)
    // An incomplete response is not mistaken for a complete one.
    if (!isForwarded) assert.doesNotMatch(client, /0\r\n\r\n$/)
  }
  for (const [body, isForwarded] of [
    [many(1_000), true],
    [large(60_000), true],
    [many(1_001), false],
  ] as const) {
    const end = isForwarded ? body : '0\r\n\r\n'
    const sent = request(CHUNKED, 'POST / HTTP/1.1') + body
    const { local } = await exchange(sent, response('Content-Length: 0\r\n', ''), end)
    assert.ok(local.endsWith(`\r\n\r\n${end}`))
  }
  const client = connectClient(edge.port, `${request(CHUNKED, 'POST / HTTP/1.1')}1\r\nx\r\n`)
  const { socket } = await local.next()
  client.socket.write(large(100_000))
  await client.closed
  assert.match(client.received(), /^HTTP\/1\.1 431 /)
  await until('the local server notices it', () => socket.destroyed)
  client.socket.destroy()
})
