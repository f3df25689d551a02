// After an upgrade, an edge and a tunnel client copy bytes: what these mean is between visitor and local
// server.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { createServer } from 'node:http'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { scrape } from '../../support/api/metrics.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { startRawLocalServer } from '../../support/edges/raw-local-server.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { openTunnel } from '../../support/edges/tunnels.ts'
import { listen } from '../../support/network/listen.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const metricsPort = await freePort()
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], {
  ADIT_METRICS_PORT: String(metricsPort),
})
const [key = ''] = keys
const local = await startRawLocalServer({ after })
const raw = await openTunnel({ after }, { edge, key, port: local.port, name: 'raw' })

const HANDSHAKE =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n' +
  'Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
  'Sec-WebSocket-Extensions: permessage-deflate; client_max_window_bits, x-unknown; a="b"\r\n' +
  'Sec-WebSocket-Protocol: chat, superchat\r\n'
const ACCEPTED =
  'Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Accept: s3pPLMBiTxaQ9kYGzzhZRbK+xOo=\r\n' +
  'Sec-WebSocket-Extensions: permessage-deflate; server_no_context_takeover\r\n' +
  'Sec-WebSocket-Protocol: superchat\r\n'

function collectBytes(socket: Socket): () => Buffer {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return () => Buffer.concat(chunks)
}

/** An upgraded connection, on which the test writes at both ends. */
async function openUpgraded(t: Test) {
  const visitor = connect({ port: edge.port, host: '127.0.0.1', allowHalfOpen: true })
  atEnd(t, () => visitor.destroy())
  visitor.on('error', () => {})
  const atVisitor = collectBytes(visitor)
  visitor.write(`GET /chat HTTP/1.1\r\nHost: ${raw.host}\r\n${HANDSHAKE}\r\n`)
  const { socket: server, received } = await local.next()
  const request = received()
  server.write(`HTTP/1.1 101 Switching Protocols\r\n${ACCEPTED}\r\n`)
  await until('the upgrade is accepted', () => atVisitor().includes('\r\n\r\n'))
  const response = String(atVisitor())
  return { visitor, server, atVisitor, received, request, response }
}

test('the headers of a handshake pass as they are, with what they say of extensions', async (t) => {
  const { request, response } = await openUpgraded(t)
  for (const line of HANDSHAKE.trim().split('\r\n')) assert.ok(request.includes(`\r\n${line}\r\n`), line)
  assert.equal(response, `HTTP/1.1 101 Switching Protocols\r\n${ACCEPTED}\r\n`)
})

/** Frames that RFC 6455 forbids. */
const INVALID_FRAMES: Record<string, Buffer> = {
  'reserved bits': Buffer.from([0xf2, 0x01, 0x61]),
  'a reserved opcode': Buffer.from([0x83, 0x00]),
  'a fragmented ping': Buffer.from([0x09, 0x00]),
  'a ping of 126 bytes': Buffer.concat([Buffer.from([0x89, 0x7e, 0x00, 0x7e]), Buffer.alloc(126)]),
  'a close frame of one byte': Buffer.from([0x88, 0x01, 0x03]),
  'text that is not UTF-8': Buffer.from([0x81, 0x02, 0xc3, 0x28]),
  'a length of 2^64 - 1': Buffer.from([0x82, 0xff, ...Array(8).fill(0xff)]),
  'a message after a close frame': Buffer.from([0x88, 0x00, 0x81, 0x01, 0x61]),
  'no frames at all': randomBytes(100_000),
}

for (const [what, bytes] of Object.entries(INVALID_FRAMES))
  test(`${what}: passes untouched in both directions`, async (t) => {
    const { visitor, server, atVisitor, response } = await openUpgraded(t)
    const atServer = collectBytes(server)
    visitor.write(bytes)
    server.write(bytes)
    await until('the bytes have passed', () =>
      [atServer().length, atVisitor().length - response.length].every((length) => length === bytes.length),
    )
    assert.ok(atServer().equals(bytes))
    assert.ok(atVisitor().subarray(response.length).equals(bytes))
    assert.ok(visitor.writable && server.writable)
  })

test('frames that come with the handshake, and with the response to it, pass', async (t) => {
  const frames = randomBytes(5_000)
  const visitor = connect(edge.port, '127.0.0.1')
  atEnd(t, () => visitor.destroy())
  const atVisitor = collectBytes(visitor)
  visitor.write(
    Buffer.concat([Buffer.from(`GET / HTTP/1.1\r\nHost: ${raw.host}\r\n${HANDSHAKE}\r\n`), frames]),
  )
  const { socket: server } = await local.next()
  const atServer = collectBytes(server)
  const response = Buffer.from(`HTTP/1.1 101 Switching Protocols\r\n${ACCEPTED}\r\n`)
  server.write(Buffer.concat([response, frames]))
  await until('the frames have passed', () => atServer().length >= 5_000 && atVisitor().length > 5_000)
  assert.ok(atServer().equals(frames))
  assert.ok(atVisitor().equals(Buffer.concat([response, frames])))
})

test('each side may end its direction, and the other goes on', async (t) => {
  for (const endsFirst of ['visitor', 'server'] as const) {
    const { visitor, server, atVisitor, response } = await openUpgraded(t)
    server.allowHalfOpen = true
    const atServer = collectBytes(server)
    const [first, second] = endsFirst === 'visitor' ? [visitor, server] : [server, visitor]
    const sent = randomBytes(200_000)
    first.end('the last bytes')
    await once(second, 'end')
    second.end(sent)
    await once(first, 'end')
    const received = endsFirst === 'visitor' ? atVisitor().subarray(response.length) : atServer()
    assert.ok(received.equals(sent))
    await until('both are closed', () => visitor.destroyed && server.destroyed)
  }
})

async function startWebSockets(t: Test, name: string, perMessageDeflate: boolean) {
  const http = createServer()
  const server = new WebSocketServer({
    server: http,
    perMessageDeflate: perMessageDeflate && { threshold: 0 },
  })
  const closes: [code: number, reason: string][] = []
  server.on('connection', (socket) => {
    socket.on('error', () => {})
    socket.on('message', (data, binary) => {
      if (String(data).startsWith('close ')) socket.close(Number(String(data).slice(6)) || undefined)
      else if (String(data) === 'terminate') socket.terminate()
      else socket.send(data, { binary })
    })
    socket.on('close', (code, reason) => closes.push([code, String(reason)]))
  })
  const { host } = await openTunnel(t, { edge, key, port: await listen(t, http), name })
  async function open(offer = true) {
    const socket = new WebSocket(`ws://127.0.0.1:${edge.port}/`, {
      headers: { host },
      perMessageDeflate: offer,
    })
    socket.on('error', () => {})
    await once(socket, 'open')
    return socket
  }
  return { http, host, server, closes, open }
}

test('permessage-deflate is negotiated by the ends, and compressed messages pass', async (t) => {
  const compressing = await startWebSockets(t, 'deflate', true)
  const plain = await startWebSockets(t, 'plain', false)
  const text = 'compressible '.repeat(50_000)
  for (const [{ open }, offer, expected] of [
    [compressing, true, 'permessage-deflate'],
    [compressing, false, ''],
    [plain, true, ''],
  ] as const) {
    const socket = await open(offer)
    assert.equal(socket.extensions, expected)
    for (let round = 0; round < 3; round += 1) {
      socket.send(text)
      const [data] = await once(socket, 'message')
      assert.equal(String(data), text)
    }
    socket.terminate()
  }
})

test('close codes pass in both directions, and so does a close without one or without a frame', async (t) => {
  const { open, closes } = await startWebSockets(t, 'codes', true)
  for (const code of [1000, 1001, 1003, 1011, 3000, 4999]) {
    const closing = await open()
    closing.close(code, `reason ${code}`)
    await until('the server sees it', () => closes.some(([seen]) => seen === code))
    assert.deepEqual(closes.at(-1), [code, `reason ${code}`])
    const closed = await open()
    closed.send(`close ${code}`)
    assert.equal((await once(closed, 'close'))[0], code)
  }
  const without = await open()
  without.send('close 0')
  assert.equal((await once(without, 'close'))[0], 1005)
  const lost = await open()
  lost.send('terminate')
  assert.equal((await once(lost, 'close'))[0], 1006)
  const leaving = await open()
  closes.length = 0
  leaving.terminate()
  await until('the server sees it', () => closes.length === 1)
  assert.equal(closes[0]?.[0], 1006)
})

/** A message of zeros, with a mask that changes nothing. */
const MESSAGE = Buffer.concat([Buffer.from([0x82, 0xfe, 0xff, 0xff, 0, 0, 0, 0]), Buffer.alloc(0xffff)])

test('visitors who disappear leave nothing behind, at the edge and at the local server', async (t) => {
  const active = async () =>
    (await scrape(`http://127.0.0.1:${metricsPort}/metrics`)).get('adit_edge_streams_active') ?? 0
  await until('nothing is in progress', async () => (await active()) === 0)
  const { http, host, server } = await startWebSockets(t, 'lost', false)
  const visitors = Array.from({ length: 60 }, () => connect(edge.port, '127.0.0.1'))
  for (const visitor of visitors) visitor.write(`GET / HTTP/1.1\r\nHost: ${host}\r\n${HANDSHAKE}\r\n`)
  await until('all are open', () => server.clients.size === visitors.length)
  assert.equal(await active(), visitors.length)
  for (const [index, visitor] of visitors.entries()) {
    visitor.on('error', () => {})
    // Some have messages in both directions on their way.
    if (index < 30) for (let sent = 0; sent < 20; sent += 1) visitor.write(MESSAGE)
    if (index % 3 === 0) visitor.resetAndDestroy()
    else if (index % 3 === 1) visitor.destroy()
    else visitor.end()
  }
  const connections = () =>
    new Promise<number>((resolve) => http.getConnections((_error, count) => resolve(count)))
  await until('all are closed', async () => server.clients.size === 0 && (await connections()) === 0)
  await until('no stream is left', async () => (await active()) === 0)
})
