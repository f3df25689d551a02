// Tunnel clients that the test controls: reopening, joining, draining and closing at the edge.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { after, test } from 'node:test'
import { openRawTunnel, startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { freePort, freePorts } from '../support/processes/ports.ts'
import { until } from '../support/until.ts'

// A port for each name of a TCP tunnel here.
const { edge, keys } = await startStandaloneEdge({ after }, ['acme'], {
  ADIT_EDGE_TCP_PORTS: (await freePorts(4)).range,
})
const key = keys[0] as string
let log = ''
edge.child.stderr?.on('data', (chunk) => {
  log += chunk
})
const OK = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'
const secret = (letter: string) => letter.repeat(32)

const events = (lines: string) =>
  lines
    .split('\n')
    .filter((line) => line !== '')
    .map((line) => JSON.parse(line) as { event: string; path?: string })

test('a client with the same secret replaces its connection; one without gets name_taken', async () => {
  let previous = await openRawTunnel(edge, key, { name: 'resumed', resume: secret('a') })
  for (const resume of [undefined, secret('b')])
    await assert.rejects(openRawTunnel(edge, key, { name: 'resumed', resume }), /already open/)
  // Also if the client never learned that its second connection was accepted.
  for (let turn = 0; turn < 2; turn++) {
    const next = await openRawTunnel(edge, key, { name: 'resumed', resume: secret('a') })
    next.respond(OK)
    await until('the previous connection is closed', () => previous.session.isClosed)
    assert.equal((await fetchHost(edge, next.host)).status, 200)
    previous = next
  }
})

test('each connection of a session has a log entry of its own, with its id', async () => {
  const openings = () =>
    Array.from(log.matchAll(/^\{.*"tunnel opened"\}$/gm), ([line]) => JSON.parse(line)).filter(
      ({ host }) => host === 'logged.acme.tunnels.test',
    )
  for (const resume of ['a', 'b'])
    await openRawTunnel(edge, key, { name: 'logged', resume: secret(resume), session: secret('s') })
  await until('both are logged', () => openings().length === 2)
  const connections = openings().map(({ connection }) => connection)
  for (const connection of connections) assert.match(connection, /^tun_\w+$/)
  assert.notEqual(connections[0], connections[1])
  for (const { id } of openings()) assert.equal(id, undefined)
})

test('two connections of one session are one tunnel without a pool, and other sessions are rejected', async () => {
  const open = (resume: string, session: string) =>
    openRawTunnel(edge, key, { name: 'session', resume: secret(resume), session: secret(session) })
  const first = await open('a', 's')
  const second = await open('b', 's')
  assert.equal(first.host, second.host)
  await assert.rejects(open('c', 'o'), /already open/)
  first.close()
  await assert.rejects(open('c', 'o'), /already open/)
  second.close()
})

test('clients that open one TCP tunnel at the same time share its port, and the others stay free', async () => {
  const open = async () => (await openRawTunnel(edge, key, { type: 'tcp', name: 'raced', pool: true })).close
  const closes = await Promise.all(Array.from({ length: 8 }, open))
  for (const close of closes) close()
  await until('other names get ports', async () => {
    const tunnels = await Promise.allSettled(
      ['one', 'two'].map((name) => openRawTunnel(edge, key, { type: 'tcp', name })),
    )
    for (const tunnel of tunnels) if (tunnel.status === 'fulfilled') tunnel.value.close()
    return tunnels.every(({ status }) => status === 'fulfilled')
  })
})

test('a client that stops gets the events of its last requests before the connection is closed', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'drained' })
  tunnel.respond(OK)
  let received = ''
  tunnel.events.on('data', (chunk) => {
    received += chunk
  })
  assert.equal((await fetchHost(edge, tunnel.host, { path: '/last' })).status, 200)
  tunnel.session.goAway()
  await until('the edge closes it', () => tunnel.session.isClosed)
  assert.deepEqual(
    events(received).map(({ event, path }) => [event, path]),
    [['request', '/last']],
  )
})

test('a stream that is not reused is ended and not reset, so that the local server sees no error', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'deletes' })
  tunnel.respond(OK)
  // More than the edge keeps for reuse; DELETE always opens a new stream.
  const send = () => fetchHost(edge, tunnel.host, { method: 'DELETE' })
  for (let batch = 0; batch < 3; batch++) await Promise.all(Array.from({ length: 60 }, send))
  await until('all are ended', () => tunnel.streams().every((stream) => stream.readableEnded))
  assert.deepEqual(
    tunnel.streams().filter(({ errored }) => errored),
    [],
  )
})

test('a stream whose local server does not close its side is reset', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'half-open' })
  tunnel.respond(OK)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  const [stream] = tunnel.streams()
  stream?.resume()
  await until('it is reset', () => stream?.destroyed === true, 15_000)
})

test('a client that leaves before its upgrade is accepted ends the request at the local server', async () => {
  const tunnel = await openRawTunnel(edge, key, { name: 'upgrade' })
  for (const leave of ['end', 'destroy'] as const) {
    const before = tunnel.streams().length
    const client = connect(edge.port, '127.0.0.1')
    client.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`)
    await until('the request arrives', () => tunnel.streams().length > before)
    const stream = tunnel.streams()[before]
    stream?.resume()
    client[leave]()
    await until(`the stream is closed after ${leave}`, () => stream?.destroyed === true)
    client.destroy()
  }
})

test('a TCP connection whose client fails is reset, so that it is not mistaken for complete', async () => {
  const tunnel = await openRawTunnel(edge, key, { type: 'tcp', name: 'cut' })
  const { port } = new URL(tunnel.url)
  for (const cut of ['stream', 'connection'] as const) {
    const before = tunnel.streams().length
    const client = connect(Number(port), '127.0.0.1')
    client.write('hello')
    await until('it arrives', () => tunnel.streams().length > before)
    const stream = tunnel.streams()[before]
    stream?.write('half of the data')
    await once(client, 'data')
    const failed = once(client, 'error')
    if (cut === 'stream') stream?.destroy(new Error('cut'))
    else tunnel.close()
    const [error] = await failed
    assert.equal(error.code, 'ECONNRESET', cut)
  }
})

test('X-Forwarded-For of an untrusted address is not passed on', async (t) => {
  const strict = await startStandaloneEdge(t, ['acme'], { ADIT_EDGE_TRUSTED_PROXIES: '192.0.2.1' })
  const tunnel = await openRawTunnel(strict.edge, strict.keys[0] as string)
  tunnel.respond(OK)
  await fetchHost(strict.edge, tunnel.host, { headers: { 'x-forwarded-for': '203.0.113.9' } })
  const [request] = tunnel.requests()
  assert.match(request as string, /^x-forwarded-for: 127\.0\.0\.1\r$/im)
  tunnel.close()
})

test('an edge that is stopping opens no more tunnels', async (t) => {
  const stopping = await startStandaloneEdge(t, ['acme'], { ADIT_EDGE_PORT: String(await freePort()) })
  const other = stopping.keys[0] as string
  const tunnel = await openRawTunnel(stopping.edge, other, { name: 'app' })
  const client = connect(stopping.edge.port, '127.0.0.1')
  client.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
  await until('the request arrives', () => tunnel.streams().length > 0)
  stopping.edge.child.kill('SIGTERM')
  await until('clients are sent away', () => tunnel.session.isGoingAway)
  // Handled after the response to the request before it.
  client.write(
    'GET /.adit/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
      'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
      `Sec-WebSocket-Protocol: adit-tunnel.v1\r\nAuthorization: Bearer ${other}\r\n\r\n`,
  )
  let received = ''
  client.on('data', (chunk) => {
    received += chunk
  })
  tunnel.streams()[0]?.write(OK)
  await once(client, 'close')
  assert.match(received, /ok.*HTTP\/1.1 503 .*The edge is stopping/s)
})
