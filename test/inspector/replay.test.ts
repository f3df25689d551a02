// A replay sends exactly what it says, to the recorded local server only.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, createServer, type Server, type Socket } from 'node:net'
import { test } from 'node:test'
import type { Exchange, Replayed, ReplayRequest } from '../../src/inspector/api.ts'
import { Replayer } from '../../src/inspector/replay/replayer.ts'
import { RecordedExchange, UNKNOWN_REQUEST } from '../../src/inspector/store/exchange.ts'
import { ExchangeStore } from '../../src/inspector/store/exchange-store.ts'
import type { Test } from '../support/cleanup.ts'
import { listen } from '../support/network/listen.ts'
import { until } from '../support/until.ts'
import { startInspected } from './support.ts'

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

/** A local server that keeps the bytes of each connection, and responds when a request is complete. */
async function start(t: Test) {
  const connections: string[] = []
  const server = createServer((socket) => {
    const index = connections.push('') - 1
    socket.on('error', () => undefined)
    socket.on('data', (chunk) => {
      const text = (connections[index] ?? '') + chunk.toString('latin1')
      connections[index] = text
      const [, head = '', body = ''] = /^(.*?\r\n\r\n)(.*)$/s.exec(text) ?? []
      const [, length = '0'] = /^content-length: (\d+)/im.exec(head) ?? []
      const isChunked = /^transfer-encoding/im.test(head)
      const isComplete = isChunked ? body.endsWith('0\r\n\r\n') : body.length >= Number(length)
      if (head !== '' && isComplete) socket.write(RESPONSE)
    })
  })
  const inspected = await startInspected(t, server)
  /** Resolves with the bytes of the replay, and what was recorded of it. */
  async function replay(id: string, edit: ReplayRequest = {}) {
    const { request } = await inspected.call<Replayed>(`/api/requests/${id}/replay`, 'POST', edit)
    const exchange = await inspected.read(request.id, 'wait=30&reveal=true')
    return { bytes: connections.at(-1) ?? '', exchange }
  }
  return { ...inspected, connections, replay }
}

/** Without a tunnel, and with an exchange that has such headers. */
async function startReplayer(t: Test, server: Server, timeoutMs?: number) {
  const port = await listen(t, server)
  const store = new ExchangeStore()
  const replayer = new Replayer(store, timeoutMs)
  const tunnel = { name: 'app', url: '', target: `http://127.0.0.1:${port}` }
  replayer.addTarget(tunnel, async () => {
    const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
    await once(socket, 'connect')
    return socket
  })
  const exchange = (headers: string[]) => {
    const recorded = new RecordedExchange(
      tunnel,
      { method: 'GET', path: '/', httpVersion: '1.1', headers },
      0,
    )
    recorded.request.body.isComplete = true
    return recorded
  }
  return { replayer, store, exchange }
}

const headersOf = ({ request }: Exchange) => request.headers.map(({ name, value }) => [name, value])

test('a request is replayed byte for byte, with masked values, and is recorded as a replay', async (t) => {
  const { exchange, connections, replay, read } = await start(t)
  const { id } = await exchange({
    method: 'POST',
    path: '/hook',
    headers: { 'X-CaSe': 'a  b', authorization: 'Bearer secret', 'content-type': 'text/plain' },
    body: Buffer.from([0, 1, 2, 0xff, 0x0d, 0x0a]),
  })
  const recorded = connections.at(-1)
  const { bytes, exchange: replayed } = await replay(id)
  assert.equal(bytes, recorded)
  assert.match(bytes, /Bearer secret/)
  assert.deepEqual([replayed.replayOf, replayed.edited, replayed.status], [id, undefined, 200])
  assert.deepEqual(headersOf(replayed), headersOf(await read(id, 'reveal=true')))
  // The original is not changed.
  assert.equal((await read(id)).replayOf, undefined)
})

test('a body in chunks is replayed as one chunk', async (t) => {
  const { exchange, replay } = await start(t)
  const { id } = await exchange({
    method: 'PUT',
    headers: { 'transfer-encoding': 'chunked' },
    body: Buffer.from('chunked body'),
  })
  const { bytes } = await replay(id)
  assert.match(bytes, /\r\n\r\nc\r\nchunked body\r\n0\r\n\r\n$/)
})

test('an edited request is sent with the given method, path, headers and body, and nothing else', async (t) => {
  const { exchange, replay, read } = await start(t)
  const { id } = await exchange({
    method: 'POST',
    headers: { authorization: 'Bearer secret', 'x-old': '1' },
    body: Buffer.from('old'),
  })
  const recorded = (await read(id)).request.headers.findIndex(({ name }) => name === 'authorization')
  const { bytes, exchange: replayed } = await replay(id, {
    method: 'PATCH',
    path: '/new?x=1',
    headers: [
      { name: 'Host', value: 'elsewhere.example' },
      { name: 'AUTHORIZATION', recorded },
      { name: 'X-New', value: 'caf\u00e9' },
      { name: 'Content-Length', value: '99999' },
      { name: 'Transfer-Encoding', value: 'chunked' },
    ],
    body: { text: 'né' },
  })
  assert.equal(
    bytes,
    'PATCH /new?x=1 HTTP/1.1\r\nHost: elsewhere.example\r\nAUTHORIZATION: Bearer secret\r\n' +
      'X-New: caf\u00e9\r\nContent-Length: 3\r\n\r\nn\u00c3\u00a9',
  )
  assert.deepEqual([replayed.replayOf, replayed.edited], [id, true])
  const { bytes: same } = await replay(id, { body: { base64: 'b2xk' } })
  assert.match(same, /^POST .*x-old: 1.*\r\n\r\nold$/s)
})

test('values that would add to a request, or lead to another host, are rejected', async (t) => {
  const { exchange, replay, connections } = await start(t)
  const { id } = await exchange({ path: '/' })
  const before = connections.length
  const invalid: ReplayRequest[] = [
    { path: 'http://other.example/' },
    { path: '/ HTTP/1.1\r\nX: y' },
    { path: '/a b' },
    { method: 'GET /\r\n' },
    { headers: [{ name: 'X', value: 'a\r\nY: b' }] },
    { headers: [{ name: 'X: y\r\nZ', value: '' }] },
    { headers: [{ name: 'X', recorded: 1_000 }] },
  ]
  for (const edit of invalid) await assert.rejects(replay(id, edit), /^Error: 400 /, JSON.stringify(edit))
  assert.equal(connections.length, before)
})

test('a recorded value is sent only under the name with which it was recorded', async (t) => {
  const { exchange, replay, read, connections } = await start(t)
  const { id } = await exchange({ headers: { authorization: 'Bearer secret' } })
  const recorded = (await read(id)).request.headers.findIndex(({ name }) => name === 'authorization')
  const before = connections.length
  const cases: [unknown, RegExp][] = [
    [{ name: 'X', recorded }, /no recorded header "X" at position \d+/],
    ...[-1, 0.5, 1_000, 2 ** 53, '0', null].map((value): [unknown, RegExp] => [
      { name: 'authorization', recorded: value },
      /"headers" must be|no recorded header "authorization" at position 1000/,
    ]),
    [{ name: 'authorization', value: '', recorded: -0.5 }, /"headers" must be/],
    [{ name: 'authorization', value: 'x', recorded }, /"headers" must be/],
    [{ name: 'authorization' }, /"headers" must be/],
  ]
  for (const [header, message] of cases) {
    const edit = { headers: [header] } as ReplayRequest
    await assert.rejects(replay(id, edit), (error: Error) => {
      assert.match(error.message, /^400 /, JSON.stringify(header))
      assert.match(JSON.parse(error.message.slice('400 '.length)).message, message)
      return true
    })
  }
  assert.equal(connections.length, before)
})

test('headers that are too long in total are rejected, and take no place of other replays', async (t) => {
  const { exchange, replay, connections } = await start(t)
  const { id } = await exchange({ path: '/' })
  const before = connections.length
  const headers = Array.from({ length: 5 }, (_, index) => ({
    name: `X-${index}`,
    value: 'v'.repeat(16_000),
  }))
  for (let attempt = 0; attempt < 11; attempt += 1)
    await assert.rejects(replay(id, { headers }), /400 .*headers have \d+ bytes \(expected at most 69632\)/)
  assert.equal(connections.length, before)
  assert.equal((await replay(id, { headers: headers.slice(0, 4) })).exchange.status, 200)
})

test('a replay that cannot be recorded closes its connection, and takes no place of others', async (t) => {
  const sockets: Socket[] = []
  const server = createServer((socket) => sockets.push(socket.on('error', () => undefined).resume()))
  const { replayer, store, exchange } = await startReplayer(t, server)
  const tooLong = exchange(['X', 'v'.repeat(70_000)])
  for (let attempt = 0; attempt < 11; attempt += 1)
    await assert.rejects(replayer.replay(tooLong, {}), /was not recorded/)
  await until(
    'all connections are closed',
    () => sockets.length === 11 && sockets.every((each) => each.closed),
  )
  assert.equal(store.size, 0)
})

test('a replay without a complete response says how long it waited, and for what', async (t) => {
  for (const [written, reason] of [
    ['', /^The local server at http:\S+ did not respond within 0\.1 s\. Check what it waits for/],
    [
      'HTTP/1.1 200 OK\r\n\r\nhalf',
      /^The local server at http:\S+ did not complete its response within 0\.1 s\. Ch/,
    ],
  ] as const) {
    const server = createServer((socket) => {
      socket.on('error', () => undefined).once('data', () => socket.write(written))
    })
    const { replayer, exchange } = await startReplayer(t, server, 100)
    const replayed = await replayer.replay(exchange([]), {})
    await until('it is over', () => replayed.state !== 'pending')
    assert.equal(replayed.state, 'aborted')
    assert.match(replayed.problem ?? '', reason)
  }
})

test('a request of which nothing was recorded is not replayed, not even edited', async () => {
  const replayer = new Replayer(new ExchangeStore())
  const exchange = new RecordedExchange({ name: 'app', url: '', target: '' }, UNKNOWN_REQUEST, 0)
  for (const edit of [{}, { method: 'GET', path: '/', body: { text: '' } }])
    await assert.rejects(replayer.replay(exchange, edit), /was not recorded, so it cannot be replayed/)
})

test('a replay fails with the reason if the local server cannot be reached', async (t) => {
  const server = createServer((socket) => socket.on('data', () => socket.end(RESPONSE)).on('error', () => {}))
  const { exchange, call } = await startInspected(t, server)
  const { id } = await exchange({ path: '/' })
  server.close()
  await until('the server is closed', () => !server.listening)
  await assert.rejects(
    call(`/api/requests/${id}/replay`, 'POST', {}),
    /502 .*target_unreachable.*http:\/\/localhost:\d+ cannot be reached/,
  )
})
