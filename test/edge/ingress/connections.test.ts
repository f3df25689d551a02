// Connections to the edge: pipelining, CONNECT, upgrades, malformed requests and resets.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { openOwnTunnel, openRawTunnel, startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { type Edge, fetchHost, openSocket, untilAccepted } from '../../support/edges/tunnels.ts'
import { sendRaw } from '../../support/network/raw.ts'
import { until } from '../../support/until.ts'

const HEALTH = 'GET /.adit/health HTTP/1.1\r\nHost: x\r\n\r\n'

function open(edge: Edge, bytes = ''): Socket & { received: string } {
  const socket = Object.assign(connect(edge.port, '127.0.0.1'), {
    received: '',
  })
  socket.on('error', () => {})
  socket.on('data', (chunk) => {
    socket.received += chunk
  })
  socket.write(bytes)
  return socket
}

/** A close with unread input is a reset. */
const closed = (socket: Socket) => new Promise((resolve) => socket.once('close', resolve))

const statuses = (received: string) => [...received.matchAll(/HTTP\/1\.1 (\d{3}) /g)].map(([, code]) => code)

/** All 500 slots of a tunnel are free: as many requests fit, and no more. */
async function assertAllSlotsFree(edge: Edge, host: string): Promise<void> {
  const clients = Array.from({ length: 500 }, () =>
    open(edge, `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 9\r\n\r\n`),
  )
  await untilAccepted(edge)
  await until('the tunnel is full', async () => (await fetchHost(edge, host)).status === 503)
  assert.deepEqual(
    clients.filter(({ received }) => received !== ''),
    [],
  )
  for (const client of clients) client.destroy()
}

const get = (host: string, path = '/') => `GET ${path} HTTP/1.1\r\nHost: ${host}\r\n\r\n`
const upgrade = (host: string) =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n`

const { edge, keys } = await startStandaloneEdge({ after }, ['acme'])
const key = keys[0] as string

test('however a connection with pipelined requests ends, their slots are released', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const pipelined = get(host, '/drip/5').repeat(31)
  const sequences: Record<string, string> = {
    'CONNECT after many': `${get(host).repeat(101)}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
    'CONNECT after some': `${pipelined}CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n`,
    'an upgrade after some': pipelined + upgrade(host),
    'an upgrade behind a request to the edge': `${HEALTH}${pipelined}${upgrade(host)}`,
    'a malformed request after some': `${pipelined}nonsense\r\n\r\n`,
    'a bad chunk after some': `${pipelined}POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\nzz`,
    'a close': pipelined,
  }
  for (const [what, bytes] of Object.entries(sequences)) {
    const client = open(edge, bytes)
    await until('there is a response or a close', () => client.received !== '' || client.destroyed)
    client.destroy()
    t.diagnostic(what)
  }
  await until('every slot is free again', async () => (await fetchHost(edge, host)).status === 200)
  await assertAllSlotsFree(edge, host)
})

test('requests on one connection are handled one at a time, and too many close it', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const client = open(edge, get(host, '/drip/30').repeat(2))
  await once(client, 'data')
  assert.equal(local.requests.length, 1)
  await until('the second is handled too', () => local.requests.length === 2)
  client.destroy()

  const waiting = open(edge, get(host, '/drip/5').repeat(32))
  await until('all have responses', () => statuses(waiting.received).length === 32)
  waiting.destroy()
  const greedy = open(edge, get(host, '/drip/1000').repeat(33))
  await closed(greedy)
  assert.deepEqual(statuses(greedy.received), [])

  // Waiting requests may not be large either: their bodies are buffered.
  const body = 'x'.repeat(40_000)
  const post = `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: ${body.length}\r\n\r\n${body}`
  const large = open(edge, get(host, '/drip/1000') + post.repeat(10))
  await closed(large)
  const three = open(edge, get(host, '/drip/3') + post.repeat(3))
  await until('all have responses', () => statuses(three.received).length === 4)
  three.destroy()
})

test('requests that wait behind others take a limited amount of memory in total', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const headers = Array.from({ length: 150 }, (_, index) => `x-${index}: ${'v'.repeat(80)}\r\n`).join('')
  const large = `GET / HTTP/1.1\r\nHost: ${host}\r\n${headers}\r\n`
  const clients = Array.from({ length: 200 }, () => open(edge, get(host, '/drip/1000') + large.repeat(16)))
  t.after(() => clients.forEach((client) => void client.destroy()))
  await until(
    'those beyond the limit are closed',
    () => clients.filter((client) => client.closed).length >= 80,
  )
  assert.ok(clients.filter((client) => !client.closed).length >= 40, 'the others wait')
  assert.equal((await fetchHost(edge, host)).status, 200)
  const tooMany = `GET / HTTP/1.1\r\nHost: ${host}\r\n${'x:\r\n'.repeat(300)}\r\n`
  const rejected = open(edge, get(host, '/drip/3') + tooMany)
  await closed(rejected)
  assert.deepEqual(statuses(rejected.received), ['200', '431'])
})

test('CONNECT is rejected, after the responses to the requests before it', async () => {
  const connecting = 'CONNECT example.com:443 HTTP/1.1\r\nHost: example.com:443\r\n\r\n'
  const { status, body } = await sendRaw(edge.url, connecting)
  assert.equal(status, 405)
  assert.match(body, /CONNECT/)
  const withBody = connecting.replace('\r\n\r\n', '\r\nContent-Length: 4\r\n\r\nbody')
  for (const bytes of [withBody, withBody.slice(0, -2)]) {
    const { status } = await sendRaw(edge.url, bytes)
    assert.equal(status, 405)
  }
  const client = open(edge, HEALTH + HEALTH + connecting + HEALTH)
  await closed(client)
  assert.deepEqual(statuses(client.received), ['200', '200', '405'])
})

test('a large response is sent completely, whatever the client sends next', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  for (const next of [
    'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n',
    upgrade('nothing.tunnels.test'),
    'nonsense\r\n\r\n',
  ]) {
    const client = open(edge, get(host, '/bytes/20000000') + next)
    await closed(client)
    assert.deepEqual(statuses(client.received.replace(/x+/, '')).length, 2, next)
    assert.ok(client.received.length > 20_000_000, next)
  }
})

test('an upgrade waits for the requests before it', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const handshake = 'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ=='
  const client = open(
    edge,
    get(host, '/drip/3') + upgrade(host).replace('Upgrade: x', `Upgrade: websocket\r\n${handshake}`),
  )
  await until('both have responses', () => statuses(client.received).length === 2)
  assert.deepEqual(statuses(client.received), ['200', '101'])
  client.destroy()
})

test('nothing after an upgrade that is not performed is interpreted, and the connection closes', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const headers = `Host: ${host}\r\nConnection: Upgrade\r\n`
  const requests = {
    'with a body': `POST /first HTTP/1.1\r\n${headers}Upgrade: x\r\nContent-Length: 2\r\n\r\n{}`,
    'with a chunked body': `POST /first HTTP/1.1\r\n${headers}Upgrade: x\r\nTransfer-Encoding: chunked\r\n\r\n2\r\n{}\r\n0\r\n\r\n`,
    'to h2c': `GET /first HTTP/1.1\r\n${headers}Upgrade: h2c\r\n\r\n`,
    'to the edge': HEALTH.replace('\r\n\r\n', '\r\nConnection: Upgrade\r\nUpgrade: h2c\r\n\r\n'),
  }
  const unfinished = `GET /nope HTTP/1.1\r\nHost: ${host}\r\nX-A: `
  const after: Record<string, [string, string]> = {
    'a request in the same packet': [get(host, '/smuggled'), ''],
    'a request in the next packet': ['', get(host, '/smuggled')],
    'a header value, continued by what looks like a request': [unfinished, get(host, '/smuggled')],
    'an upgrade in the next packet': ['', upgrade(host)],
    'a malformed request': ['', 'nonsense\r\n\r\n'],
    CONNECT: ['', 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'],
  }
  for (const [what, request] of Object.entries(requests))
    for (const [follower, [rest, next]] of Object.entries(after)) {
      const client = open(edge, get(host, '/before') + request + rest)
      await once(client, 'data')
      client.write(next)
      await closed(client)
      const label = `${what}, then ${follower}: ${client.received}`
      assert.deepEqual(statuses(client.received), ['200', '200'], label)
      const last = client.received.slice(client.received.lastIndexOf('HTTP/1.1 '))
      assert.match(last, /^connection: close\r$/im, label)
    }
  assert.deepEqual([...new Set(local.requests.map(({ url }) => url))], ['/before', '/first'])
})

test('a request never gets two responses', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  const post = (path: string, to = host) =>
    `POST ${path} HTTP/1.1\r\nHost: ${to}\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`
  // Before the response has begun, 400 is the response; afterwards the connection is closed.
  const early = open(edge, post('/'))
  await until('it has arrived', () => local.requests.length === 1)
  early.write('zz\r\n')
  await closed(early)
  assert.deepEqual(statuses(early.received), ['400'])

  for (const [path, to] of [
    ['/early', host],
    ['/', 'nothing.tunnels.test'],
    ['/.adit/health', 'x'],
  ] as const) {
    const answered = open(edge, post(path, to))
    await once(answered, 'data')
    answered.write('zz\r\n')
    await closed(answered)
    assert.equal(statuses(answered.received).length, 1, path)
  }

  // The same while the response is being sent.
  const { host: raw, respond } = await openRawTunnel(edge, key)
  respond('HTTP/1.1 200 OK\r\nContent-Length: 1000\r\n\r\nbegun')
  const during = open(edge, post('/', raw))
  await once(during, 'data')
  during.write('zz\r\n')
  await closed(during)
  assert.deepEqual(statuses(during.received), ['200'])

  // A malformed request behind others is rejected in order, once.
  const behind = open(edge, `${get(host, '/drip/3')}${HEALTH}nonsense\r\n\r\n`)
  await once(behind, 'data')
  behind.write('more nonsense\r\n\r\n')
  await closed(behind)
  assert.deepEqual(statuses(behind.received), ['200', '200', '400'])
  const cut = open(edge, `${get(host, '/drip/3')}${post('/')}zz\r\n`)
  await closed(cut)
  assert.deepEqual(statuses(cut.received), ['200', '400'])
})

test('a request to open a tunnel that is not a valid upgrade is 400 with the reason, and the edge stays up', async () => {
  const valid: Record<string, string> = {
    Connection: 'Upgrade',
    Upgrade: 'websocket',
    'Sec-WebSocket-Version': '13',
    'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ==',
    'Sec-WebSocket-Protocol': 'adit-tunnel.v1',
    Authorization: `Bearer ${key}`,
  }
  const ask = (headers: Record<string, string>, body = '') => {
    const lines = Object.entries({ ...valid, ...headers }).map(([name, value]) => `${name}: ${value}\r\n`)
    return sendRaw(edge.url, `GET /.adit/connect HTTP/1.1\r\nHost: x\r\n${lines.join('')}\r\n${body}`, 1_000)
  }
  const invalid: Record<string, string>[] = [
    { Upgrade: 'adit-tunnel' },
    { 'Sec-WebSocket-Version': '8' },
    { 'Sec-WebSocket-Key': 'short' },
    { 'Sec-WebSocket-Protocol': 'chat' },
    ...['x', '[]', 'null', '"a"', '{"name":1}', '{"pool":"yes"}', '{"type":"udp"}', '{"resume":"x"}'].map(
      (tunnel) => ({ 'Adit-Tunnel': tunnel }),
    ),
    { 'Adit-Tunnel': `{"client":"${'x'.repeat(65)}"}` },
    { 'Adit-Tunnel': `{"name":"${'x'.repeat(4_100)}"}` },
    { 'Adit-Tunnel': '{"name":"not a label"}' },
  ]
  for (const headers of invalid) {
    const { status, body } = await ask(headers)
    assert.equal(status, 400, JSON.stringify(headers).slice(0, 100))
    const { error, message } = JSON.parse(body)
    assert.equal(error, 'invalid_request')
    assert.match(message, /Expected a WebSocket upgrade|Adit-Tunnel must be|Invalid tunnel name/)
  }
  for (const [headers, body] of [
    [{ 'Content-Length': '2' }, '{}'],
    [{ 'Transfer-Encoding': 'chunked' }, '2\r\n{}\r\n0\r\n\r\n'],
  ] as const)
    assert.equal((await ask(headers, body)).status, 400)
  assert.equal((await ask({})).status, 101)
  assert.equal((await fetchHost(edge, 'x', { path: '/.adit/health' })).status, 200)
})

test('a request without a host is rejected in order', async () => {
  const client = open(edge, `${HEALTH}GET / HTTP/1.1\r\n\r\n${HEALTH}malformed\r\n\r\n`)
  await closed(client)
  assert.deepEqual(statuses(client.received), ['200', '400', '200', '400'])
})

test('a client whose large body is rejected can read the response, also if the connection closes', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  for (const [path, name, status] of [
    ['/.adit/connect', 'x', 400],
    ['/early', host, 200],
    ['/', 'unknown.test', 404],
  ] as const)
    for (const size of [100_000, 1_000_000])
      for (let round = 0; round < 10; round++) {
        const headers = { connection: 'close' }
        const rejected = await fetchHost(edge, name, {
          method: 'POST',
          path,
          headers,
          body: Buffer.alloc(size, '['),
        })
        assert.equal(rejected.status, status, `${path} with ${size} bytes`)
      }
})

test('unknown expectations are ignored, and 100-continue is honored', async (t) => {
  const { host } = await openOwnTunnel(t, edge, key)
  const post = (expect: string) =>
    `POST / HTTP/1.1\r\nHost: ${host}\r\nExpect: ${expect}\r\nContent-Length: 2\r\nConnection: close\r\n\r\nhi`
  const unknown = open(edge, post('something'))
  await closed(unknown)
  assert.deepEqual(statuses(unknown.received), ['200'])
  const known = open(edge, post('100-continue'))
  await closed(known)
  assert.deepEqual(statuses(known.received), ['100', '200'])
})

test('resets at any time crash neither the edge nor the tunnel client', async (t) => {
  const tunnel = await openOwnTunnel(t, edge, key)
  const { host } = tunnel
  const connecting = 'CONNECT x:1 HTTP/1.1\r\nHost: x\r\n\r\n'
  const beginnings = [
    '',
    'GET / HT',
    get(host, '/bytes/10000000'),
    get(host, '/drip/100').repeat(5),
    connecting,
    connecting.replace('\r\n\r\n', '\r\nContent-Length: 9\r\n\r\nhalf'),
    get(host, '/drip/5') + connecting,
    upgrade(host),
    upgrade('nothing.tunnels.test'),
    get(host, '/drip/5') + upgrade(host),
    'nonsense\r\n\r\n',
    `POST / HTTP/1.1\r\nHost: ${host}\r\nContent-Length: 100\r\n\r\nhalf`,
    `POST / HTTP/1.1\r\nHost: ${host}\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n`,
    'GET /.adit/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\r\n',
  ]
  for (let turn = 0; turn < 6; turn++)
    await Promise.all(
      beginnings.map(async (bytes) => {
        const client = open(edge, bytes)
        await once(client, 'connect')
        // Resets immediately, after a turn of the event loop, or when the first bytes arrived.
        if (turn % 3 === 1) await new Promise(setImmediate)
        if (turn % 3 === 2 && bytes.endsWith('\r\n\r\n'))
          await until('there is a response or a close', () => client.received !== '' || client.destroyed)
        client.resetAndDestroy()
      }),
    )
  const socket = await openSocket(edge, host)
  socket.terminate()
  assert.equal((await fetchHost(edge, host)).status, 200)
  await assertAllSlotsFree(edge, host)
  assert.deepEqual([edge.child.exitCode, tunnel.child.exitCode], [null, null])
})

test('an edge keeps as many idle connections to the local server as the client announces', async () => {
  for (const [idleConnections, reused] of [
    [0, 0],
    [2, 2],
    [150, 120],
    [undefined, 100],
  ] as const) {
    const tunnel = await openRawTunnel(edge, key, { idleConnections })
    const waiting: (() => void)[] = []
    tunnel.onStream((stream) =>
      stream.on('data', () =>
        waiting.push(() => stream.write('HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok')),
      ),
    )
    const request120 = async () => {
      const before = tunnel.streams().length
      const responses = Array.from({ length: 120 }, () => fetchHost(edge, tunnel.host))
      await until('all requests are in progress', () => waiting.length === 120)
      for (const respond of waiting.splice(0)) respond()
      for (const response of responses) assert.equal((await response).status, 200)
      return tunnel.streams().length - before
    }
    assert.equal(await request120(), 120)
    assert.equal(await request120(), 120 - reused, `${idleConnections} announced`)
    tunnel.close()
  }
  for (const idleConnections of [-1, 1.5, 1_001, '5'] as number[])
    await assert.rejects(openRawTunnel(edge, key, { idleConnections }), /idleConnections \(0 to 1000\)/)
})
