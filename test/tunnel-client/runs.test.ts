// The tunnel client, against an edge of which the test controls every step.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { type AddressInfo, connect, createServer, type Server, type Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { parseProxies } from '../../src/lib/net/proxy/settings.ts'
import { TunnelRejected } from '../../src/tunnel-client/connect.ts'
import { EXTRA_MAX } from '../../src/tunnel-client/extra-connections.ts'
import { LocalServer } from '../../src/tunnel-client/local-server.ts'
import { DRAINING_CONNECTIONS_MAX, runTunnel, type TunnelOptions } from '../../src/tunnel-client/run.ts'
import { EVENT_BYTES_MAX } from '../../src/tunnel-protocol/protocol.ts'
import { acceptKey } from '../../src/tunnel-protocol/websocket.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { OPENED, openStream, startMinimalEdge } from '../support/edges/minimal-edge.ts'
import { freePort } from '../support/processes/ports.ts'
import { until } from '../support/until.ts'

async function listen(t: Test, onSocket: (socket: Socket) => void, host = '127.0.0.1', port = 0) {
  const sockets = new Set<Socket>()
  const server: Server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => undefined)
    socket.on('close', () => sockets.delete(socket))
    onSocket(socket)
  })
  server.listen(port, host)
  await once(server, 'listening')
  const close = () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  }
  atEnd(t, close)
  return { port: (server.address() as AddressInfo).port, sockets, close }
}

const echo = (socket: Socket) => socket.pipe(socket)

type StartOptions = Partial<TunnelOptions> & { host?: string }

/** A running tunnel client, and what it reported. */
function start(
  t: Test,
  { host = '127.0.0.1', port, ...options }: StartOptions & { edge: string; port: number },
) {
  const stop = new AbortController()
  const abort = new AbortController()
  const reports: [string, unknown][] = []
  const report = (event: string) => (value: unknown) => void reports.push([event, value])
  const ended = runTunnel({
    key: 'adit_key',
    findProxy: undefined,
    type: 'http',
    name: undefined,
    pool: false,
    localServer: new LocalServer({
      target: { host, port },
      isHttp: false,
      onProblem: (problem, message) => report(problem)(message),
      onReachable: () => report('reachable')(undefined),
    }),
    signal: stop.signal,
    abortSignal: abort.signal,
    onOpen: report('open'),
    onLost: report('lost'),
    onRequest: report('request'),
    onConnection: report('connection'),
    onNotice: report('notice'),
    onDrain: report('drain'),
    ...options,
  })
  ended.catch(() => undefined)
  atEnd(t, async () => {
    stop.abort()
    abort.abort()
    await ended.catch(() => undefined)
  })
  const of = (event: string) => reports.filter(([name]) => name === event).map(([, value]) => value)
  return { stop, abort, ended, reports, of }
}

/** Until the end of this direction; the other one stays open. */
async function readAll(stream: Duplex): Promise<Buffer> {
  const chunks: Buffer[] = []
  stream.on('data', (chunk) => chunks.push(chunk))
  await once(stream, 'end')
  return Buffer.concat(chunks)
}

const closed = (stream: Duplex) => new Promise((resolve) => stream.once('close', resolve))

async function openTunnel(t: Test, port: number, options: StartOptions = {}) {
  const edge = await startMinimalEdge(t)
  const client = start(t, { edge: edge.url, port, ...options })
  const side = await edge.connection()
  await until('open', () => client.of('open').length > 0)
  return { edge, client, side }
}

test('the upgrade has the key and the wanted tunnel, and what the edge opened is reported', async (t) => {
  const edge = await startMinimalEdge(t)
  const client = start(t, {
    edge: edge.url,
    port: 9,
    type: 'tcp',
    name: 'ünïcode',
    pool: true,
    client: 'test 1',
  })
  const { request, authorization } = await edge.connection()
  assert.equal(authorization, 'Bearer adit_key')
  const { resume, session, ...rest } = request
  for (const secret of [resume, session]) assert.match(secret ?? '', /^[\w-]{32}$/)
  assert.deepEqual(rest, { type: 'tcp', name: 'ünïcode', pool: true, client: 'test 1' })
  await until('open', () => client.of('open').length > 0)
  assert.deepEqual(client.of('open'), [OPENED])
})

test('bytes are copied in both directions, many streams at once, more than the windows', async (t) => {
  const local = await listen(t, echo)
  const { side } = await openTunnel(t, local.port)
  await Promise.all(
    Array.from({ length: 20 }, async (_, index) => {
      const stream = openStream(side)
      const sent = Buffer.alloc(1_000_000 + index, String.fromCharCode(65 + index))
      stream.end(sent)
      assert.ok((await readAll(stream)).equals(sent))
    }),
  )
  await until('all closed', () => local.sockets.size === 0)
})

test('a stream that is not read pauses its connection to the local server, and no other stream', async (t) => {
  let written = 0
  let socket: Socket | undefined
  const local = await listen(t, (opened) => {
    socket ??= opened
    if (socket !== opened) return echo(opened)
    const write = () => {
      while (opened.write(Buffer.alloc(65_536, 'x'))) written += 65_536
    }
    opened.on('drain', write)
    opened.once('data', write)
  })
  const { side } = await openTunnel(t, local.port)
  const slow = openStream(side)
  slow.write('go')
  let before = -1
  await until('the local server sends no more', async () => {
    const isPaused = written > 0 && written === before
    before = written
    await new Promise((resolve) => setTimeout(resolve, 50))
    return isPaused
  })
  assert.ok(written < 32 * 1024 * 1024, String(written))
  const other = openStream(side)
  other.end('hello')
  assert.equal(String(await readAll(other)), 'hello')
  slow.resume()
  await until('it continues', () => written > before)
})

test('the end of each direction is passed on, and the other one continues', async (t) => {
  const sockets: Socket[] = []
  const local = await listen(t, (socket) => void sockets.push(socket))
  const { side } = await openTunnel(t, local.port)

  const first = openStream(side)
  first.end('request')
  await until('connected', () => sockets.length === 1)
  assert.equal(String(await readAll(sockets[0] as Socket)), 'request')
  sockets[0]?.end('response after the end')
  assert.equal(String(await readAll(first)), 'response after the end')

  const second = openStream(side)
  second.write('x')
  await until('connected', () => sockets.length === 2)
  sockets[1]?.end('goodbye')
  assert.equal(String(await readAll(second)), 'goodbye')
  second.end('still here')
  assert.equal(String(await readAll(sockets[1] as Socket)), 'xstill here')
  await until('all closed', () => local.sockets.size === 0)
  assert.equal(side.session.streams, 1, 'only the stream of events')
})

test('resets are passed on in both directions', async (t) => {
  const sockets: Socket[] = []
  const errors: NodeJS.ErrnoException[] = []
  const local = await listen(t, (socket) => {
    sockets.push(socket)
    socket.on('error', (error) => errors.push(error))
    socket.resume()
  })
  const { side } = await openTunnel(t, local.port)

  const first = openStream(side)
  first.write('x')
  await until('connected', () => sockets.length === 1)
  const reset = closed(first)
  sockets[0]?.resetAndDestroy()
  await reset
  assert.equal(first.readableEnded, false)

  const second = openStream(side)
  second.write('x')
  await until('connected', () => sockets.length === 2)
  second.destroy()
  await until('reset', () => errors.length === 1)
  assert.equal(errors[0]?.code, 'ECONNRESET')

  // After the local server has ended its direction.
  const third = openStream(side)
  third.write('x')
  await until('connected', () => sockets.length === 3)
  sockets[2]?.end()
  third.resume()
  await once(third, 'end')
  sockets[2]?.resetAndDestroy()
  // After the end of what can be read, only a write notices the reset.
  await until('reset', () => {
    if (!third.destroyed) third.write('more')
    return third.destroyed
  })
  assert.equal(side.session.streams, 1, 'only the stream of events')
})

test('a stream that is reset before the local server accepts leaves nothing behind', async (t) => {
  const local = await listen(t, echo)
  const { side } = await openTunnel(t, local.port)
  for (let index = 0; index < 50; index += 1) openStream(side).destroy()
  const stream = openStream(side)
  stream.end('x')
  assert.equal(String(await readAll(stream)), 'x')
  await until('all closed', () => local.sockets.size === 0)
})

test('an unreachable local server resets streams, and is reported when it works again', async (t) => {
  const port = await freePort()
  const { side, client } = await openTunnel(t, port, { host: 'localhost' })
  const fail = async () => {
    const stream = openStream(side)
    stream.write('x')
    await closed(stream)
  }
  await fail()
  await fail()
  assert.match(String(client.of('unreachable')[0]), /ECONNREFUSED/)
  assert.equal(client.of('reachable').length, 0)
  const local = await listen(t, echo, '127.0.0.1', port)
  const stream = openStream(side)
  stream.end('works')
  assert.equal(String(await readAll(stream)), 'works')
  await until('it is reported', () => client.of('reachable').length === 1)
  local.close()
  const before = client.of('unreachable').length
  await fail()
  assert.ok(client.of('unreachable').length > before)
})

test('a host name that does not resolve is reported as unreachable', async (t) => {
  const { side, client } = await openTunnel(t, 80, { host: 'does-not-exist.invalid' })
  const stream = openStream(side)
  await closed(stream)
  assert.match(String(client.of('unreachable')[0]), /ENOTFOUND|EAI_AGAIN/)
})

for (const host of ['127.0.0.1', '::1'])
  test(`localhost reaches a server that listens on ${host} only, also after it moved`, async (t) => {
    const port = await freePort()
    const local = await listen(t, echo, host, port)
    const { side } = await openTunnel(t, port, { host: 'localhost' })
    const sendHello = async () => {
      const stream = openStream(side)
      stream.end('hello')
      assert.equal(String(await readAll(stream)), 'hello')
    }
    await sendHello()
    await sendHello()
    local.close()
    await listen(t, echo, host === '::1' ? '127.0.0.1' : '::1', port)
    await sendHello()
  })

test('events are reported; unknown, malformed and too long ones are ignored', async (t) => {
  const { side, client } = await openTunnel(t, 9)
  const request = { method: 'GET', path: '/ü', status: 200, bytesIn: 1, bytesOut: 2, ms: 1.5 }
  const connection = { bytesIn: 1, bytesOut: 2, ms: 3 }
  const lines = [
    { event: 'request', ...request, unknown: 1, problem: 'later' },
    { event: 'later' },
    { event: 'request', method: 1 },
    { event: 'request', ...request, path: '/\r\nadit: \u001b[31mfake' },
    { event: 'request', ...request, method: 'GET\u009b' },
    { event: 'open', url: 1 },
    '{"event":"request"',
    'null',
    '',
    '"text"',
    'x'.repeat(EVENT_BYTES_MAX + 1),
    { event: 'connection', ...connection },
    { event: 'notice' },
    { event: 'notice', message: '\u001b[31mfake' },
    { event: 'notice', message: 'The quota is used up.' },
    { event: 'request', ...request, path: 'x'.repeat(EVENT_BYTES_MAX) },
    { event: 'request', ...request, path: '/last' },
  ]
  const bytes = Buffer.from(
    lines.map((line) => `${typeof line === 'string' ? line : JSON.stringify(line)}\n`).join(''),
  )
  // In pieces that split lines and characters.
  for (let start = 0; start < bytes.length; ) {
    const size = start < 600 ? 1 : 5_000
    side.events.write(bytes.subarray(start, start + size))
    start += size
    if (start % 100 === 0) await side.session.ping()
  }
  await until('the last event', () => client.of('request').length >= 2)
  assert.deepEqual(client.reports.slice(1), [
    ['request', request],
    ['connection', connection],
    ['notice', 'The quota is used up.'],
    ['request', { ...request, path: '/last' }],
  ])
})

test('a tunnel with access rules that the edge does not confirm is closed', async (t) => {
  const rules = [
    { allowIp: ['10.0.0.0/8'] },
    { basicAuth: { user: 'ann', password: 'correct horse' } },
    { basicAuth: { user: 'ann', password: 'correct horse' }, allowIp: ['10.0.0.0/8'] },
  ]
  const confirmed = { basicAuth: true, allowIp: true }
  for (const access of rules)
    for (const opened of [
      OPENED,
      { ...OPENED, access: { ...confirmed, [Object.keys(access)[0] as string]: false } },
    ]) {
      const edge = await startMinimalEdge(t, { onConnect: ({ send }) => send({ event: 'open', ...opened }) })
      const client = start(t, { edge: edge.url, port: 9, access })
      await assert.rejects(
        client.ended,
        (error) => error instanceof TunnelRejected && error.code === 'access_unsupported',
      )
      assert.deepEqual(client.reports, [])
      await until('the connection is closed', () => edge.connections.every(({ isClosed }) => isClosed))
    }
  const edge = await startMinimalEdge(t, {
    onConnect: ({ send }) => send({ event: 'open', ...OPENED, access: confirmed }),
  })
  const client = start(t, { edge: edge.url, port: 9, access: rules[2] })
  await until('it is open', () => client.of('open').length === 1)
})

test('streams that arrive before the tunnel is open are reset, and do not reach the local server', async (t) => {
  let connections = 0
  const local = await listen(t, (socket) => {
    connections += 1
    echo(socket)
  })
  const edge = await startMinimalEdge(t, { onConnect: () => {} })
  const access = { allowIp: ['10.0.0.0/8'] }
  start(t, { edge: edge.url, port: local.port, access })
  const side = await edge.connection()
  const early = openStream(side)
  early.write('too early')
  await until('it is reset', () => early.destroyed)
  // One that the edge itself resets meanwhile is no error.
  const aborted = openStream(side)
  aborted.write('too early')
  setImmediate(() => aborted.destroy(new Error('aborted')))
  await until('it is aborted', () => aborted.destroyed)
  side.send({ event: 'open', ...OPENED, access: { basicAuth: false, allowIp: true } })
  const late = openStream(side)
  late.end('in time')
  assert.equal(String(await readAll(late)), 'in time')
  assert.equal(connections, 1)
})

test('a stream that arrives together with the confirmation is served', async (t) => {
  const local = await listen(t, echo)
  const streams: Duplex[] = []
  const edge = await startMinimalEdge(t, {
    onConnect(side) {
      side.send({ event: 'open', ...OPENED })
      streams.push(openStream(side).end('at once'))
    },
  })
  start(t, { edge: edge.url, port: local.port })
  await edge.connection()
  assert.equal(String(await readAll(streams[0] as Duplex)), 'at once')
})

test('open is reported before the events that arrive together with it', async (t) => {
  const request = { method: 'GET', path: '/', status: 200, bytesIn: 1, bytesOut: 2, ms: 1 }
  const edge = await startMinimalEdge(t, {
    onConnect({ send }) {
      send({ event: 'open', ...OPENED })
      send({ event: 'request', ...request })
    },
  })
  const client = start(t, { edge: edge.url, port: 9 })
  await until('both', () => client.reports.length === 2)
  assert.deepEqual(
    client.reports.map(([event]) => event),
    ['open', 'request'],
  )
})

test('after a GoAway the client opens a new connection, and the old one completes its streams', async (t) => {
  const local = await listen(t, echo)
  const { edge, side, client } = await openTunnel(t, local.port)
  const old = openStream(side)
  old.write('begun ')
  await once(old, 'readable')
  side.session.goAway()
  const next = await edge.connection(1)
  // It is another connection of the session: the edge must not close the old one.
  assert.notEqual(next.request.resume, side.request.resume)
  assert.deepEqual({ ...next.request, resume: side.request.resume }, { ...side.request, name: 'my-app' })
  await until('open again', () => client.of('open').length === 2)
  old.end('and complete')
  assert.equal(String(await readAll(old)), 'begun and complete')
  const stream = openStream(next)
  stream.end('new')
  assert.equal(String(await readAll(stream)), 'new')
  side.session.close()
  await until('the old connection is closed', () => side.isClosed)
  const later = openStream(next)
  later.end('still served')
  assert.equal(String(await readAll(later)), 'still served')
  assert.deepEqual(client.of('lost'), [])
})

test('an edge that sends GoAway again and again cannot make the client keep every old connection', async (t) => {
  const edge = await startMinimalEdge(t)
  const client = start(t, { edge: edge.url, port: 9 })
  // One more than the client keeps, besides the current one.
  for (let index = 0; index <= DRAINING_CONNECTIONS_MAX; index++) {
    const side = await edge.connection(index)
    await until('open', () => client.of('open').length > index)
    side.session.goAway()
  }
  await edge.connection(DRAINING_CONNECTIONS_MAX + 1)
  await until('the oldest is closed', () => edge.connections[0]?.isClosed === true)
  assert.deepEqual(
    edge.connections.map(({ isClosed }) => isClosed),
    edge.connections.map((_, index) => index === 0),
  )
  assert.deepEqual(client.of('lost'), [])
})

test('an extra connection serves streams, and is neither opened again nor reported as lost', async (t) => {
  const local = await listen(t, echo)
  const { edge, side, client } = await openTunnel(t, local.port)
  side.send({ event: 'connect' })
  const extra = await edge.connection(1)
  const { resume } = extra.request
  assert.notEqual(resume, side.request.resume)
  assert.deepEqual(extra.request, { ...side.request, resume, name: 'my-app', extra: true })
  const stream = openStream(extra)
  stream.write('begun ')
  await once(stream, 'readable')
  extra.session.goAway()
  stream.end('and complete')
  assert.equal(String(await readAll(stream)), 'begun and complete')
  // The edge may open more, and closes the connection.
  const late = openStream(extra)
  late.end('late')
  assert.equal(String(await readAll(late)), 'late')
  assert.deepEqual([extra.isGoingAway, extra.isClosed], [false, false])
  extra.session.close()
  await until('it is closed', () => extra.isClosed)
  side.send({ event: 'connect' })
  const second = await edge.connection(2)
  second.socket.destroy()
  await until('it is lost', () => second.isClosed)
  side.send({ event: 'notice', message: 'all is well' })
  await until('the notice', () => client.of('notice').length > 0)
  assert.equal(edge.connections.length, 3)
  assert.equal(side.isClosed, false)
  assert.deepEqual([client.of('open').length, client.of('lost').length], [1, 0])
})

test('the loss of the first connection is not reported while an extra one is open', async (t) => {
  const local = await listen(t, echo)
  const { edge, side, client } = await openTunnel(t, local.port)
  side.send({ event: 'connect' })
  const extra = await edge.connection(1)
  const hello = async (at: typeof side) => {
    const stream = openStream(at)
    stream.end('hello')
    assert.equal(String(await readAll(stream)), 'hello')
  }
  await hello(extra)
  side.socket.destroy()
  const next = await edge.connection(2)
  assert.equal(next.request.extra, undefined)
  await hello(next)
  await hello(extra)
  assert.deepEqual([client.of('open').length, client.of('lost').length], [1, 0])
})

test('an edge cannot make the client open extra connections without end', async (t) => {
  const { edge, side, client } = await openTunnel(t, 9)
  for (let index = 0; index < 100; index++) side.send({ event: 'connect' })
  await edge.connection(EXTRA_MAX)
  side.send({ event: 'connect' })
  side.send({ event: 'notice', message: 'all were asked for' })
  await until('the notice', () => client.of('notice').length > 0)
  assert.equal(edge.connections.length, 1 + EXTRA_MAX)
  client.stop.abort()
  await until('all are closed', () => edge.connections.every(({ isGoingAway }) => isGoingAway))
})

test('a lost connection is reported and opened again with its name and resume', async (t) => {
  const { edge, side, client } = await openTunnel(t, 9, { name: 'my-app' })
  side.socket.destroy()
  const next = await edge.connection(1)
  assert.deepEqual(next.request, { ...side.request, name: 'my-app' })
  await until('open again', () => client.of('open').length === 2)
  assert.deepEqual(client.of('lost'), [`The edge at ${edge.url} closed the connection.`])
})

test('a client that stops still serves a stream that the edge opened before it knew', async (t) => {
  const local = await listen(t, echo)
  const { side, client } = await openTunnel(t, local.port)
  client.stop.abort()
  const late = openStream(side)
  late.write('a request')
  await once(late, 'readable')
  // Longer than the edge has to close a connection without streams.
  await sleep(1_500)
  late.end()
  assert.match(String(await readAll(late)), /a request/)
})

test('when it stops, streams in progress are completed; the edge closes the connection', async (t) => {
  const local = await listen(t, echo)
  const { side, client } = await openTunnel(t, local.port)
  const stream = openStream(side)
  stream.write('begun ')
  await once(stream, 'readable')
  client.stop.abort()
  await until('GoAway', () => side.isGoingAway)
  await until('reported', () => client.of('drain').length === 1)
  assert.deepEqual(client.of('drain'), [1])
  stream.end('and complete')
  assert.equal(String(await readAll(stream)), 'begun and complete')
  side.session.close()
  await client.ended
  assert.deepEqual(client.of('lost'), [])
})

test('when it stops and nothing is in progress, it ends also if the edge does not close', async (t) => {
  const { side, client } = await openTunnel(t, 9)
  client.stop.abort()
  await client.ended
  assert.equal(side.isGoingAway, true)
  await until('closed', () => side.isClosed)
  assert.deepEqual(client.of('drain'), [])
})

test('streams in progress are reset after the drain time, or at a second signal', async (t) => {
  const local = await listen(t, echo)
  for (const drainMs of [400, undefined]) {
    const { side, client } = await openTunnel(t, local.port, drainMs ? { drainMs } : {})
    const stream = openStream(side)
    stream.write('begun')
    await once(stream, 'readable')
    client.stop.abort()
    await until('reported', () => client.of('drain').length === 1)
    if (!drainMs) client.abort.abort()
    await client.ended
    await until('closed', () => side.isClosed && local.sockets.size === 0)
  }
})

test('a stop ends the client while it connects, before the tunnel is open, and during the backoff', async (t) => {
  const silent = await listen(t, (socket) => void socket.resume().on('end', () => socket.end()))
  const edge = await startMinimalEdge(t, { onConnect: () => undefined })
  for (const [url, isBegun] of [
    [`http://127.0.0.1:${silent.port}`, () => silent.sockets.size > 0],
    [edge.url, () => edge.connections.length > 0],
    [
      `http://127.0.0.1:${await freePort()}`,
      (client: ReturnType<typeof start>) => client.of('lost').length > 0,
    ],
  ] as const) {
    const client = start(t, { edge: url, port: 9 })
    await until('begun', () => isBegun(client))
    client.stop.abort()
    await client.ended
    assert.deepEqual(client.of('open'), [])
  }
  await until('all closed', () => silent.sockets.size === 0 && edge.connections.every((one) => one.isClosed))
})

for (const [status, error, isRetried] of [
  [400, 'invalid_request', false],
  [401, 'unauthorized', false],
  [403, 'not_provisioned', false],
  [403, 'tcp_disabled', false],
  [409, 'name_taken', false],
  [429, 'too_many_tunnels', false],
  [503, 'unavailable', true],
  [503, 'no_free_port', true],
] as const)
  test(`HTTP ${status} ${error} ${isRetried ? 'is retried' : 'ends the tunnel'}`, async (t) => {
    let requests = 0
    const edge = await startMinimalEdge(t, {
      respond(_request, response) {
        requests += 1
        response.writeHead(status).end(JSON.stringify({ error, message: 'Some reason.' }))
      },
    })
    const client = start(t, { edge: edge.url, port: 9 })
    const message = `The edge at ${edge.url} rejected the tunnel: some reason.`
    if (isRetried) {
      await until('retried', () => requests > 1)
      assert.equal(client.of('lost')[0], message)
    } else {
      await assert.rejects(client.ended, new TunnelRejected(error, message))
      assert.equal(requests, 1)
    }
  })

test('a tunnel that the edge closes with a reason ends with it and is not opened again', async (t) => {
  const { edge, client, side } = await openTunnel(t, 9)
  side.send({ event: 'close', reason: 'requested', message: 'Ann closed it.' })
  side.session.close()
  await assert.rejects(client.ended, new TunnelRejected('closed', 'Ann closed it.'))
  assert.equal(edge.connections.length, 1)
  assert.deepEqual(client.of('lost'), [])
})

test('a tunnel that was closed while its connection was lost ends with the reason when it reconnects', async (t) => {
  const message = 'Ann closed it.'
  let isClosed = false
  const edge = await startMinimalEdge(t, {
    isRejected: () => isClosed,
    respond: (_request, response) =>
      void response.writeHead(403).end(JSON.stringify({ error: 'closed', message })),
  })
  const client = start(t, { edge: edge.url, port: 9 })
  const side = await edge.connection()
  await until('open', () => client.of('open').length > 0)
  isClosed = true
  side.socket.destroy()
  await assert.rejects(client.ended, new TunnelRejected('closed', message))
})

test('a server that is not an edge ends the tunnel; a proxy that cannot reach its edge is retried', async (t) => {
  for (const [status, headers, body, what] of [
    [200, {}, '<html>', 'HTTP 200'],
    [404, {}, '{"error":"not_found","message":"No such route."}', 'HTTP 404'],
    [400, {}, 'x'.repeat(100_000), 'HTTP 400'],
    [301, { location: 'https://edge.test/' }, '', 'HTTP 301, redirect to https://edge.test/'],
  ] as const) {
    const edge = await startMinimalEdge(t, {
      respond: (_request, response) => void response.writeHead(status, headers).end(body),
    })
    const message = `${edge.url} is not an Adit edge (${what}). Check --edge.`
    await assert.rejects(start(t, { edge: edge.url, port: 9 }).ended, new TunnelRejected('no_edge', message))
  }
  const proxy = await startMinimalEdge(t, {
    respond: (_request, response) => void response.writeHead(502).end('<html>'),
  })
  const client = start(t, { edge: proxy.url, port: 9 })
  await until('lost', () => client.of('lost').length > 0)
  assert.equal(client.of('lost')[0], `The edge at ${proxy.url} is not available (HTTP 502).`)
})

test('an error response that is cut off is reported with the edge, and retried', async (t) => {
  const edge = await startMinimalEdge(t, {
    respond(_request, response) {
      response.writeHead(503, { 'content-length': 100 }).write('{"error":')
      response.socket?.destroySoon()
    },
  })
  const client = start(t, { edge: edge.url, port: 9 })
  await until('retried', () => client.of('lost').length > 1)
  assert.equal(client.of('lost')[0], `The edge at ${edge.url} cannot be reached: aborted.`)
})

test('a server that upgrades to another protocol is not an edge', async (t) => {
  const other = await listen(t, (socket) => {
    socket.on('end', () => socket.end())
    socket.on('data', () =>
      socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n'),
    )
  })
  const client = start(t, { edge: `http://127.0.0.1:${other.port}`, port: 9 })
  await assert.rejects(client.ended, /is not an Adit edge \(HTTP 101\)/)
  await until('closed', () => other.sockets.size === 0)
})

test('an unreachable edge is retried until it is there', async (t) => {
  const port = await freePort()
  const client = start(t, { edge: `http://127.0.0.1:${port}`, port: 9 })
  await until('lost', () => client.of('lost').length > 0)
  assert.match(String(client.of('lost')[0]), /cannot be reached: connect ECONNREFUSED .*\.$/)
  await startMinimalEdge(t, { port })
  await until('open', () => client.of('open').length > 0)
})

test('a proxy that rejects the password ends the tunnel, also one that was open', async (t) => {
  const edge = await startMinimalEdge(t)
  let toAccept = 0
  let rejected = 0
  const proxy = await listen(t, (socket) =>
    socket.once('data', () => {
      if (toAccept === 0) {
        rejected++
        return socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n')
      }
      toAccept--
      const server = connect(Number(new URL(edge.url).port), '127.0.0.1')
      server.on('error', () => undefined)
      socket.write('HTTP/1.1 200 OK\r\n\r\n')
      return socket.pipe(server).pipe(socket)
    }),
  )
  const findProxy = parseProxies({ HTTP_PROXY: `http://ann:secret@127.0.0.1:${proxy.port}` })
  const rejection = { name: 'TunnelRejected', code: 'proxy_rejected', message: /with 407: set a valid user/ }
  await assert.rejects(start(t, { edge: edge.url, port: 9, findProxy }).ended, rejection)
  assert.equal(rejected, 1)
  toAccept = 1
  const client = start(t, { edge: edge.url, port: 9, findProxy })
  await until('open', () => client.of('open').length > 0)
  for (const socket of proxy.sockets) socket.destroy()
  await assert.rejects(client.ended, rejection)
  assert.equal(rejected, 2)
})

test('a session that violates yamux is lost, and opened again', async (t) => {
  const { edge, side, client } = await openTunnel(t, 9)
  side.socket.write(Buffer.from([0x82, 12, ...Buffer.alloc(12, 0xff)]))
  await edge.connection(1)
  await until('open again', () => client.of('open').length === 2)
  assert.match(String(client.of('lost')[0]), /^The connection to the edge at \S+ was lost: .+[^.]\.$/)
})

test('invalid frames that arrive together with the upgrade lose the connection, and nothing else', async (t) => {
  let connections = 0
  const edge = await listen(t, (socket) =>
    socket.once('data', (request) => {
      connections += 1
      const [, key = ''] = /^sec-websocket-key: (.+)$/im.exec(String(request)) ?? []
      const head =
        'HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        `Sec-WebSocket-Accept: ${acceptKey(key)}\r\nSec-WebSocket-Protocol: adit-tunnel.v1\r\n\r\n`
      // In one packet: the first frame is parsed before anything else happens.
      socket.write(`${head}\xff\xff\x00\x00`, 'latin1')
    }),
  )
  const client = start(t, { edge: `http://127.0.0.1:${edge.port}`, port: 9 })
  await until('another attempt', () => connections > 1)
  assert.match(String(client.of('lost')[0]), /was lost: The peer sent a frame with reserved bits\.$/)
})
