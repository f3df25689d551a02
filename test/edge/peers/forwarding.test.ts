// Requests that arrive at an edge without the tunnel client are forwarded to the edge that has it.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { get } from 'node:http'
import { after, test } from 'node:test'
import { PeerEdges } from '../../support/edges/peer-edges.ts'
import { startRawLocalServer } from '../../support/edges/raw-local-server.ts'
import { connectClient, startHttp } from '../../support/edges/tunneled.ts'
import { fetchHost, openSocket, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

const cluster = await PeerEdges.create({ after })
const serving = await cluster.start('edge_serving')
const entry = await cluster.start('edge_entry')
const local = await startLocal({ after })
const tunnel = await openTunnel(
  { after },
  {
    edge: serving,
    key: cluster.key,
    port: local.port,
    name: 'app',
  },
)
const { host } = tunnel

const describe = async (edge: typeof entry, headers: Record<string, string> = {}) =>
  JSON.parse(String((await fetchHost(edge, host, { headers, path: '/?a=b' })).body))

test('a request through a hop reaches the local server as one without', async () => {
  const headers = { 'x-forwarded-for': '203.0.113.9' }
  const [through, without] = [await describe(entry, headers), await describe(serving, headers)]
  assert.deepEqual(through, without)
  assert.equal(through.headers['x-forwarded-for'], '203.0.113.9, 127.0.0.1')
  assert.equal(through.headers['x-forwarded-proto'], 'http')
  assert.equal(through.headers['x-forwarded-host'], host)
  assert.equal(through.url, '/?a=b')
})

test('forwarded requests and connections between edges are counted', async () => {
  const { instruments, peers } = entry.metrics
  const before = instruments.forwarded
  await describe(entry)
  await describe(serving)
  assert.equal(instruments.forwarded - before, 1)
  assert.equal(serving.metrics.instruments.forwarded, 0)
  assert.deepEqual(
    [peers?.(), serving.metrics.peers?.()],
    [
      { in: 0, out: 1 },
      { in: 1, out: 0 },
    ],
  )
})

test('an upload and a download of 20 MB arrive whole', async () => {
  const sent = await fetchHost(entry, host, { method: 'POST', body: Buffer.alloc(20e6, 'u') })
  assert.equal(JSON.parse(String(sent.body)).received, 20e6)
  const got = await fetchHost(entry, host, { path: `/bytes/${20e6}` })
  assert.ok(got.body.equals(Buffer.alloc(20e6, 'x')))
})

test('a WebSocket works through a hop', async () => {
  const socket = await openSocket(entry, host)
  for (const size of [1, 70_000]) {
    socket.send(Buffer.alloc(size, 'w'))
    const [echo] = await once(socket, 'message')
    assert.equal((echo as Buffer).length, size)
  }
  socket.close()
  await once(socket, 'close')
})

test('each server-sent event arrives when it is sent', async (t) => {
  let send: (event: string) => void = () => {}
  const { port } = await startHttp(t, (_request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' })
    response.flushHeaders()
    send = (event) => response.write(`data: ${event}\n\n`)
  })
  const events = await openTunnel(t, { edge: serving, key: cluster.key, port, name: 'events' })
  const [response] = await once(
    get({ host: '127.0.0.1', port: entry.port, headers: { host: events.host }, agent: false }),
    'response',
  )
  for (const event of ['one', 'two']) {
    send(event)
    assert.equal(String((await once(response, 'data'))[0]), `data: ${event}\n\n`)
  }
  response.destroy()
})

test('informational responses and the body of a request that expects 100-continue pass a hop', async (t) => {
  const raw = await startRawLocalServer(t)
  const { host } = await openTunnel(t, { edge: serving, key: cluster.key, port: raw.port, name: 'hints' })
  for (const response of ['417 Expectation Failed', '200 OK']) {
    const head = `POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: 100-continue\r\nContent-Length: 4\r\n\r\n`
    const visitor = connectClient(entry.port, head)
    const { socket, received, receives } = await raw.next()
    const hint = 'HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n'
    socket.write(hint)
    await until('the hint arrives', () => visitor.received() === hint)
    const isAccepted = response === '200 OK'
    if (isAccepted) {
      socket.write('HTTP/1.1 100 Continue\r\n\r\n')
      await until('100 arrives', () => visitor.received().endsWith('100 Continue\r\n\r\n'))
      visitor.socket.write('body')
      await receives('\r\n\r\nbody')
    }
    socket.write(`HTTP/1.1 ${response}\r\nContent-Length: 0\r\n\r\n`)
    await until('the response arrives', () => visitor.received().includes(`HTTP/1.1 ${response}\r\n`))
    assert.equal(received().endsWith('body'), isAccepted)
    visitor.socket.destroy()
  }
})

test('heads of 64 KiB pass a hop in both directions', async (t) => {
  const raw = await startRawLocalServer(t)
  const { host } = await openTunnel(t, { edge: serving, key: cluster.key, port: raw.port, name: 'heads' })
  const large = `X-Large: ${'x'.repeat(65_000)}\r\n`
  const visitor = connectClient(entry.port, `GET / HTTP/1.1\r\nHost: ${host}\r\n${large}\r\n`)
  const { socket, received } = await raw.next()
  assert.ok(received().includes(large))
  socket.write(`HTTP/1.1 200 OK\r\nContent-Length: 0\r\n${large}\r\n`)
  await until('the response arrives', () => visitor.received().includes('\r\n\r\n'))
  assert.ok(visitor.received().includes(large))
  visitor.socket.destroy()
})

test('trailers pass a hop in both directions', async (t) => {
  const raw = await startRawLocalServer(t)
  const { host } = await openTunnel(t, { edge: serving, key: cluster.key, port: raw.port, name: 'trailers' })
  const message = 'Transfer-Encoding: chunked\r\nTrailer: X-Mark\r\n\r\n1\r\nx\r\n0\r\nX-Mark: 1\r\n\r\n'
  const visitor = connectClient(entry.port, `POST / HTTP/1.1\r\nHost: ${host}\r\n${message}`)
  const { socket, received, receives } = await raw.next()
  const trailers = '1\r\nx\r\n0\r\nX-Mark: 1\r\n\r\n'
  await receives(trailers)
  socket.write(`HTTP/1.1 200 OK\r\n${message}`)
  await until('the trailers arrive', () => visitor.received().endsWith(trailers))
  for (const text of [received(), visitor.received()]) assert.match(text, /\r\nTrailer: X-Mark\r\n/)
  visitor.socket.destroy()
})

test('usage is counted once, at the entry edge, and the client shows each request', async () => {
  const before = { ...entry.usage }
  const servingBefore = { ...serving.usage }
  const [client] = serving.tunnels.get('app')?.clients ?? []
  const totals = { ...client?.totals } as Required<typeof before>
  const shown = tunnel.events().length
  await fetchHost(entry, host, { method: 'POST', body: Buffer.alloc(1e6, 'u') })
  await fetchHost(entry, host, { path: `/bytes/${2e6}` })
  assert.equal(entry.usage.requests - before.requests, 2)
  assert.ok(Math.abs(entry.usage.bytesIn - before.bytesIn - 1e6) < 2_000)
  assert.ok(Math.abs(entry.usage.bytesOut - before.bytesOut - 2e6) < 2_000)
  assert.deepEqual(serving.usage, servingBefore)
  await until('the events of both requests arrive', () => tunnel.events().length >= shown + 2)
  assert.deepEqual(
    tunnel
      .events()
      .slice(shown)
      .map(({ method, status }) => [method, status]),
    [
      ['POST', 200],
      ['GET', 200],
    ],
  )
  assert.equal((client?.totals.requests ?? 0) - totals.requests, 2)
  assert.ok((client?.totals.bytesIn ?? 0) - totals.bytesIn >= 1e6)
  assert.ok((client?.totals.bytesOut ?? 0) - totals.bytesOut >= 2e6)
})

test('a client of the entry edge is preferred', async (t) => {
  const own = await startHttp(t, (_request, response) => response.end('own'))
  await openTunnel(t, { edge: entry, key: cluster.key, port: own.port, name: 'app', flags: ['--pool'] })
  for (let times = 0; times < 3; times += 1) assert.equal(String((await fetchHost(entry, host)).body), 'own')
})

test('two edges that each believe the other has the host respond 404', async () => {
  cluster.locate('nobody.acme.tunnels.test', 'edge_serving', 'edge_entry')
  for (const edge of [serving, entry]) {
    const { status } = await fetchHost(edge, 'nobody.acme.tunnels.test')
    assert.equal(status, 404)
  }
})
