// After the response to a revocation no edge carries a byte for the key: an edge that is reached acknowledges
// at once, and one that is not stops carrying traffic when its lease ends. Edges and clients are processes.
import assert from 'node:assert/strict'
import { get, type IncomingMessage } from 'node:http'
import { connect, createServer, type Socket } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve, type TestServer } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import {
  type Edge,
  fetchHost,
  type OpenTunnel,
  openSocket,
  openTunnel,
  startLocal,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { startRelay } from '../support/network/relay.ts'
import { freePort, isListening } from '../support/processes/ports.ts'
import { until } from '../support/until.ts'

/** The interval of syncs and something for a busy machine; the lease of a real control plane is longer. */
const LEASE_MS = 9_000
/** How long a revocation waits for an edge that is gone; see docs/revocation.md. */
const WAIT_MAX_MS = 25_300

async function setUp(t: Test, env: Record<string, string> = {}) {
  const port = await freePort()
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_TCP_PORTS: `${port}-${port}`, ...env } })
  const local = await startLocal(t)
  const start = async (name: string, tcpHost = '127.0.0.1') => {
    const { token } = await addEdge(server, name)
    const relay = await startRelay(t, server.url)
    const edge = await startTunnelEdge(t, {
      env: {
        ADIT_URL: relay.url,
        ADIT_EDGE_KEY: token,
        ADIT_EDGE_FOLDER: join(createFolder(t), 'edge'),
        ADIT_EDGE_PEER_PORT: String(await freePort()),
        ADIT_EDGE_TCP_HOST: tcpHost,
      },
    })
    return { ...edge, relay, tcpHost }
  }
  return { server, local, start }
}

/** The edges renew their leases for this time from now on. The control plane waits as always. */
function shortenLeases({ services }: TestServer): void {
  services.propagation.edgeLeaseMs = LEASE_MS
}

const ignoreReset = (error: NodeJS.ErrnoException) => assert.equal(error.code, 'ECONNRESET')

interface Download {
  response: IncomingMessage
  bytes(): number
  isClosed(): boolean
}

/** A response that takes longer than the test. */
const download = (edge: Pick<Edge, 'port'>, host: string) =>
  new Promise<Download>((resolve, reject) => {
    let bytes = 0
    let isClosed = false
    const request = get(
      { port: edge.port, path: '/drip/100000', headers: { host }, agent: false },
      (response) => {
        response.on('data', (chunk: Buffer) => (bytes += chunk.length))
        response.on('error', ignoreReset)
        response.on('close', () => (isClosed = true))
        resolve({ response, bytes: () => bytes, isClosed: () => isClosed })
      },
    )
    request.on('error', reject)
  })

async function connectTcp(t: Test, port: number, host: string): Promise<Socket> {
  const socket = connect(port, host)
  socket.on('error', ignoreReset)
  atEnd(t, () => socket.destroy())
  await new Promise((resolve) => socket.once('connect', resolve))
  return socket
}

const fetchReady = (edge: Pick<Edge, 'port'>) => fetchHost(edge, 'localhost', { path: '/.adit/ready' })

const revoke = async ({ call }: TestServer, id: string) => {
  const startedAt = performance.now()
  assert.equal((await call('DELETE', `/tokens/${id}`)).status, 200)
  return performance.now() - startedAt
}

const lostEvents = (tunnel: OpenTunnel) => tunnel.events().filter(({ event }) => event === 'lost')

test('the response to a revocation comes when the edge has ended everything of the key, without waiting for its next sync', async (t) => {
  const { server, local, start } = await setUp(t)
  const edge = await start('one')
  for (let round = 0; round < 3; round++) {
    const key = await createKey(server.ctx)
    const tunnel = await openTunnel(t, { edge, key: key.token, port: local.port, name: `app-${round}` })
    const running = await download(edge, tunnel.host)
    const socket = await openSocket(edge, tunnel.host)
    let received = 0
    socket.on('message', () => (received += 1))
    socket.on('error', ignoreReset)
    const echo = setInterval(() => socket.send('x'), 5)
    await until('bytes flow', () => running.bytes() > 50_000 && received > 0)
    const tookMs = await revoke(server, key.id)
    const [bytesBefore, receivedBefore] = [running.bytes(), received]
    clearInterval(echo)
    assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
    await until('all is closed', () => running.isClosed() && socket.readyState === socket.CLOSED)
    // What the kernel of this machine had received before the response may be read after it.
    assert.ok(
      running.bytes() - bytesBefore <= 200_000 && received - receivedBefore <= 20,
      'bytes after the response',
    )
    t.diagnostic(`${Math.round(tookMs)} ms`)
    assert.ok(tookMs < 2_000, `${tookMs} ms`)
  }
})

test('an edge that is cut off carries nothing when its lease has ended, and continues after it has applied what it missed', async (t) => {
  const { server, local, start } = await setUp(t)
  const edge = await start('one')
  shortenLeases(server)
  const key = await createKey(server.ctx)
  const stays = await createKey(server.ctx)
  const tunnel = await openTunnel(t, { edge, key: key.token, port: local.port, name: 'app' })
  const other = await openTunnel(t, { edge, key: stays.token, port: local.port, name: 'other' })
  const running = [await download(edge, tunnel.host), await download(edge, other.host)]
  const socket = await openSocket(edge, other.host)
  socket.on('error', ignoreReset)
  edge.relay.cut()
  const revoked = revoke(server, key.id)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  await until('the lease has ended', async () => (await fetchHost(edge, other.host)).status === 503, 40_000)
  const { body, headers } = await fetchHost(edge, other.host, { headers: { accept: 'application/json' } })
  assert.equal(JSON.parse(String(body)).error, 'edge_cut_off')
  assert.ok(Number(headers['retry-after']) > 0)
  await until('streams are aborted', () => running.every((each) => each.isClosed()))
  await until('the WebSocket is closed', () => socket.readyState === socket.CLOSED)
  assert.equal((await fetchHost(edge, 'x.acme.localhost')).status, 404)
  assert.deepEqual([...lostEvents(tunnel), ...lostEvents(other)], [])
  const tookMs = await revoked
  assert.ok(tookMs <= WAIT_MAX_MS + 1_000, `${tookMs} ms`)
  edge.relay.mend()
  const statuses = new Set<number>()
  await until('traffic is carried again', async () => {
    statuses.add((await fetchHost(edge, tunnel.host)).status)
    return (await fetchHost(edge, other.host)).status === 200
  })
  assert.equal(statuses.has(200), false, 'the missed revocation was not applied first')
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
  assert.deepEqual(lostEvents(other), [])
})

test('an edge that was stopped for longer than its lease passes on no byte when it continues', async (t) => {
  const { server, local, start } = await setUp(t)
  const edge = await start('one')
  const key = await createKey(server.ctx)
  const tunnel = await openTunnel(t, { edge, key: key.token, port: local.port, name: 'app' })
  const running = await Promise.all([1, 2, 3, 4].map(() => download(edge, tunnel.host)))
  await until('bytes flow', () => running.every((each) => each.bytes() > 50_000))
  edge.child.kill('SIGSTOP')
  const tookMs = await revoke(server, key.id)
  assert.ok(tookMs > 15_000 && tookMs <= WAIT_MAX_MS + 1_000, `${tookMs} ms`)
  const before = running.map((each) => each.bytes())
  edge.child.kill('SIGCONT')
  await until('all is closed', () => running.every((each) => each.isClosed()))
  assert.deepEqual(
    running.map((each) => each.bytes()),
    before,
  )
})

test('with ADIT_EDGE_ACKNOWLEDGMENTS=off, open tunnels stay open while the control plane is unreachable', async (t) => {
  const { server, local, start } = await setUp(t, { ADIT_EDGE_ACKNOWLEDGMENTS: 'off' })
  const edge = await start('one')
  const key = await createKey(server.ctx)
  const tunnel = await openTunnel(t, { edge, key: key.token, port: local.port, name: 'app' })
  const running = await download(edge, tunnel.host)
  edge.relay.cut()
  assert.ok((await revoke(server, key.id)) < 2_000)
  const endsAt = performance.now() + WAIT_MAX_MS + 2_000
  await until('the time of a lease is over', () => performance.now() > endsAt, WAIT_MAX_MS + 5_000)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  assert.equal(running.isClosed(), false)
  edge.relay.mend()
  await until('the revocation is received', () => running.isClosed(), 20_000)
})

test('a revocation waits for the edge that forwards requests, until it passes on nothing of the key', async (t) => {
  const { server, local, start } = await setUp(t)
  const [serving, entry] = [await start('serving'), await start('entry')]
  const key = await createKey(server.ctx)
  const tunnel = await openTunnel(t, {
    ...{ edge: serving, key: key.token, port: local.port, name: 'app' },
    flags: ['--edges', '1'],
  })
  await until('it is forwarded', async () => (await fetchHost(entry, tunnel.host)).status === 200)
  const running = await download(entry, tunnel.host)
  await until('bytes flow', () => running.bytes() > 50_000)
  entry.child.kill('SIGSTOP')
  const tookMs = await revoke(server, key.id)
  const before = running.bytes()
  t.diagnostic(`${Math.round(tookMs)} ms`)
  entry.child.kill('SIGCONT')
  await until('the download ends', () => running.isClosed())
  assert.equal(running.bytes(), before)
  assert.ok(tookMs < 10_000, `${tookMs} ms`)
})

test('without its lease an edge closes TCP connections, also those of other edges, and is not ready', async (t) => {
  const { server, start } = await setUp(t)
  const [serving, entry] = [await start('serving', '127.0.0.8'), await start('entry', '127.0.0.9')]
  shortenLeases(server)
  const port = await listen(
    t,
    createServer((socket) => socket.on('error', () => {}).pipe(socket)),
  )
  const tunnel = await openTunnel(t, {
    ...{ edge: serving, key: server.key.token, port, name: 'db', type: 'tcp' },
    flags: ['--edges', '1'],
  })
  const tcpPort = Number(new URL(tunnel.url).port)
  const echo = async (edge: typeof entry) => {
    const socket = await connectTcp(t, tcpPort, edge.tcpHost)
    const response = new Promise<string>((resolve) => {
      socket.once('data', (data) => resolve(String(data))).once('close', () => resolve(''))
    })
    socket.write('hello')
    return { socket, response: await response }
  }
  await until('the entry edge listens', () => isListening(tcpPort, entry.tcpHost))
  for (const edge of [entry, serving]) {
    const { socket, response } = await echo(edge)
    assert.equal(response, 'hello')
    assert.equal((await fetchReady(edge)).status, 200)
    edge.relay.cut()
    await until('the connection is closed', () => socket.destroyed, 40_000)
    const ready = await fetchReady(edge)
    assert.deepEqual([ready.status, JSON.parse(String(ready.body)).error], [503, 'cut_off'])
    assert.equal((await echo(edge)).response, '')
    if (edge === entry) assert.equal((await echo(serving)).response, 'hello')
  }
  serving.relay.mend()
  await until('the edge is ready', async () => (await fetchReady(serving)).status === 200)
  assert.equal((await echo(serving)).response, 'hello')
})
