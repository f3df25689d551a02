// What the requests through a tunnel with --inspect leave behind.
import assert from 'node:assert/strict'
import { createServer, request } from 'node:http'
import { test } from 'node:test'
import { brotliCompressSync, gzipSync } from 'node:zlib'
import { WebSocketServer } from 'ws'
import { MASK, type MessageList } from '../../src/inspector/api.ts'
import { openSocket } from '../support/edges/tunnels.ts'
import { until } from '../support/until.ts'
import { httpServer, startInspected } from './support.ts'

const JSON_TYPE = { 'content-type': 'application/json' }

test('a request and its response are recorded with headers, bodies and times', async (t) => {
  const { exchange } = await startInspected(
    t,
    httpServer((request, response) => {
      request.resume().once('end', () => {
        response.writeHead(201, { ...JSON_TYPE, 'content-encoding': 'gzip', 'x-made': 'yes' })
        response.end(gzipSync('{"id":12345678901234567890,"id":2}'))
      })
    }),
  )
  const recorded = await exchange({
    method: 'POST',
    path: '/orders',
    headers: { 'content-type': 'application/x-www-form-urlencoded', 'X-Case': 'Kept' },
    body: Buffer.from('name=caf%C3%A9&count=2'),
  })
  assert.equal(recorded.method, 'POST')
  assert.match(recorded.path, /^\/orders\?/)
  assert.equal(recorded.tunnel, 'app')
  assert.equal(recorded.status, 201)
  assert.equal(recorded.state, 'complete')
  const { request, response } = recorded
  assert.ok(request.headers.some(({ name, value }) => name === 'X-Case' && value === 'Kept'))
  assert.deepEqual(request.body.view, { type: 'text', format: 'form', text: 'name: café\ncount: 2' })
  assert.deepEqual(response?.body.decoded, ['gzip'])
  // Numbers and repeated members stay as they are.
  assert.deepEqual(response?.body.view, {
    type: 'text',
    format: 'json',
    text: '{\n  "id": 12345678901234567890,\n  "id": 2\n}',
  })
  assert.equal(response?.body.cut, false)
  const { firstByteMs = -1, lastByteMs = -1 } = recorded
  assert.ok(firstByteMs >= 0 && lastByteMs >= firstByteMs)
})

test('several requests on one connection are recorded one by one', async (t) => {
  const { fetch, list } = await startInspected(
    t,
    httpServer((request, response) => response.end(request.url)),
  )
  for (let index = 0; index < 20; index += 1) await fetch({ path: `/${index}` })
  await until('all are recorded', async () => (await list('status=2xx')).length === 20)
  const recorded = await list()
  assert.deepEqual(
    recorded.toReversed().map(({ path, state }) => [path, state]),
    Array.from({ length: 20 }, (_, index) => [`/${index}`, 'complete']),
  )
})

test('of large bodies the beginning is kept, and visitors get all of them', async (t) => {
  const bytes = 3 * 1024 * 1024
  const { fetch, list, read } = await startInspected(
    t,
    httpServer((request, response) => {
      request.resume().once('end', () => response.end(Buffer.alloc(bytes, 'r')))
    }),
  )
  const { body } = await fetch({ method: 'PUT', path: '/large', body: Buffer.alloc(bytes, 'q') })
  assert.ok(body.equals(Buffer.alloc(bytes, 'r')))
  await until('it is recorded', async () => (await list('path=large'))[0]?.state === 'complete')
  const [{ id = '' } = {}] = await list('path=large')
  const { request, response, replayable } = await read(id)
  for (const part of [request, response]) {
    assert.equal(part?.body.bytes, bytes)
    assert.equal(part?.body.recordedBytes, 1024 * 1024)
    assert.equal(part?.body.cut, true)
  }
  assert.equal(replayable, false)
})

test('messages of a WebSocket are recorded as they pass, also compressed ones', async (t) => {
  const server = createServer()
  const sockets = new WebSocketServer({ server, perMessageDeflate: { threshold: 0 } })
  sockets.on('connection', (socket) => {
    socket.on('message', (data, isBinary) => socket.send(data, { binary: isBinary }))
  })
  const { edge, tunnel, list, call } = await startInspected(t, server)
  const socket = await openSocket(edge, tunnel.host)
  const texts = ['first', 'first again, so that the window is used: first first first', 'ü'.repeat(5_000)]
  for (const text of texts) socket.send(text)
  socket.send(Buffer.from([0, 1, 2, 255]))
  socket.ping('p')
  await until('all are recorded', async () => ((await list('kind=websocket'))[0]?.messages ?? 0) >= 10)
  const [{ id = '', state, status } = {}] = await list('kind=websocket')
  assert.deepEqual([state, status], ['pending', 101])
  const { messages } = await call<MessageList>(`/api/requests/${id}/messages`)
  for (const from of ['client', 'server'] as const) {
    const sent = messages.filter((message) => message.from === from)
    assert.deepEqual(
      sent.filter(({ type }) => type === 'text').map(({ text }) => text),
      texts,
    )
    assert.match(sent.find(({ type }) => type === 'binary')?.text ?? '', /^00000000 {2}00 01 02 ff /)
  }
  const { messages: later } = await call<MessageList>(`/api/requests/${id}/messages?after=3`)
  assert.equal(later[0]?.number, 4)
  socket.close(4001, 'enough')
  await until('it is closed', async () => (await list('kind=websocket'))[0]?.state === 'complete')
  const { messages: all } = await call<MessageList>(`/api/requests/${id}/messages`)
  assert.ok(all.some(({ type, code, text }) => type === 'close' && code === 4001 && text === 'enough'))
})

test('events of an event stream are recorded as they pass', async (t) => {
  const { edge, tunnel, list, call } = await startInspected(
    t,
    httpServer((_, response) => {
      response.writeHead(200, { 'content-type': 'text/event-stream' })
      response.write('id: 7\nevent: tick\r\ndata: one\ndata: two\n\n: comment\n\ndata:three\n\n')
    }),
  )
  const sent = request({ port: edge.port, host: '127.0.0.1', path: '/live', headers: { host: tunnel.host } })
  sent.on('error', () => undefined)
  sent.end()
  await until('both are recorded', async () => (await list('kind=sse&path=live'))[0]?.messages === 2)
  const [{ id = '', state } = {}] = await list('kind=sse&path=live')
  assert.equal(state, 'pending')
  const { messages } = await call<MessageList>(`/api/requests/${id}/messages`)
  assert.deepEqual(
    messages.map(({ text, event, eventId }) => [text, event, eventId]),
    [
      ['one\ntwo', 'tick', '7'],
      ['three', undefined, '7'],
    ],
  )
  sent.destroy()
  await until('it has ended', async () => (await list('path=live'))[0]?.state === 'aborted')
})

test('a request that no local server could get is recorded with the reason', async (t) => {
  const server = httpServer(() => undefined)
  const { exchange } = await startInspected(t, server)
  server.close()
  server.closeAllConnections()
  const { state, status, problem } = await exchange({ path: '/lost' })
  assert.deepEqual([state, status], ['aborted', undefined])
  assert.match(problem ?? '', /ECONNREFUSED/)
})

test('values that authenticate are masked until they are revealed, and a search does not find them', async (t) => {
  const { exchange, read, list } = await startInspected(
    t,
    httpServer((_, response) => {
      response.setHeader('set-cookie', ['a=cookie-secret', 'b=2'])
      response.end('ok')
    }),
    ['--mask-header', 'X-Api-Key'],
  )
  const headers = {
    authorization: 'Bearer bearer-secret',
    cookie: 'c=1',
    'x-api-key': 'key-secret',
    'x-open': 'open',
  }
  const masked = await exchange({ path: '/masked', headers })
  const text = JSON.stringify(masked)
  assert.doesNotMatch(text, /-secret|c=1/)
  assert.match(text, /"open"/)
  assert.equal(masked.response?.headers.filter(({ masked }) => masked).length, 2)
  for (const secret of ['bearer-secret', 'key-secret', 'cookie-secret'])
    assert.deepEqual(await list(`search=${secret}`), [])
  assert.equal((await list('search=x-api-key')).length, 1)
  assert.equal((await list('search=OPEN')).length, 1)
  const revealed = JSON.stringify(await read(masked.id, 'reveal=true'))
  for (const secret of ['bearer-secret', 'key-secret', 'cookie-secret']) assert.ok(revealed.includes(secret))
})

test('a masked value is not shown elsewhere, in lists, problems and exports', async (t) => {
  const names = ['host', 'content-type', 'content-encoding']
  const { exchange, read, list, call } = await startInspected(
    t,
    httpServer((_, response) => {
      response.setHeader('content-type', 'secret/type')
      response.setHeader('content-encoding', 'secret-encoding')
      response.end('ok')
    }),
    names.flatMap((name) => ['--mask-header', name]),
  )
  const { id, host, contentType, response } = await exchange({ path: '/masked' })
  assert.deepEqual([host, contentType], [MASK, MASK])
  assert.equal(response?.body.decodeProblem, 'The content encoding, which is masked, could not be decoded.')
  assert.doesNotMatch(JSON.stringify(await list()), /secret|tunnels\.test/)
  assert.doesNotMatch(JSON.stringify(await call('/api/har')), /secret/)
  const revealed = await read(id, 'reveal=true')
  assert.match(revealed.host, /tunnels\.test/)
  assert.equal(revealed.contentType, 'secret/type')
  assert.match(revealed.response?.body.decodeProblem ?? '', /"secret-encoding" is not supported/)
  assert.match(JSON.stringify(await call('/api/har?reveal=true')), /"mimeType":"secret\/type"/)
})

test('lists are filtered by method, status, path, time and text, and have pages', async (t) => {
  const { exchange, list, call } = await startInspected(
    t,
    httpServer((request, response) => {
      response.statusCode = Number(request.headers['x-status'] ?? 200)
      response.end(brotliCompressSync(`needle of ${request.method}`))
    }),
  )
  const first = await exchange({ path: '/a', headers: { 'x-status': '404' } })
  const second = await exchange({ path: '/b', method: 'DELETE', headers: { 'x-status': '503' } })
  const ids = async (query: string) => (await list(query)).map(({ id }) => id)
  assert.deepEqual(await ids('status=404'), [first.id])
  assert.deepEqual(await ids('status=5xx'), [second.id])
  assert.deepEqual(await ids('status=400-499'), [first.id])
  assert.deepEqual(await ids('status=none'), [])
  assert.deepEqual(await ids('method=delete'), [second.id])
  assert.deepEqual(await ids('path=/A'), [first.id])
  assert.deepEqual(await ids(`since=${new Date(Date.now() + 60_000).toISOString()}`), [])
  assert.deepEqual(await ids('tunnel=other'), [])
  assert.deepEqual(await ids('search=X-STATUS:%20503'), [second.id])
  const { requests, nextCursor } = await call<{ requests: { id: string }[]; nextCursor?: string }>(
    '/api/requests?limit=1',
  )
  assert.deepEqual([requests[0]?.id, nextCursor], [second.id, second.id])
  assert.deepEqual(await ids(`limit=1&cursor=${nextCursor}`), [first.id])
  await assert.rejects(list('status=many'), /400 .*expected 404, 4xx/)
})

test('the oldest requests make room for new ones, and all can be deleted', async (t) => {
  const { fetch, list, call } = await startInspected(
    t,
    httpServer((_, response) => response.end('x')),
  )
  const requests = 520
  for (let index = 0; index < requests; index += 20)
    await Promise.all(Array.from({ length: 20 }, (_, each) => fetch({ path: `/${index + each}` })))
  const info = () => call<{ exchanges: number; evicted: number }>('/api/info')
  await until('all were recorded', async () => (await info()).evicted === requests - 500)
  assert.equal((await list('limit=500')).length, 500)
  await call('/api/requests', 'DELETE')
  assert.deepEqual(await list(), [])
  assert.equal((await info()).exchanges, 0)
})
