// TCP tunnels: a public port for a local server of any protocol.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFileSync } from 'node:fs'
import { type AddressInfo, connect, createServer, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { closedTunnels, fetchHost } from '../../support/edges/tunnels.ts'
import { freePort, freePorts } from '../../support/processes/ports.ts'
import { run, startProcess } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const MB = 1_000_000
const PORTS = 8
const CONNECTIONS_MAX = 500
const { first: firstPort, range } = await freePorts(PORTS)
const { edge, keys, file } = await startStandaloneEdge({ after }, ['acme', 'beta'], {
  ADIT_EDGE_TCP_PORTS: range,
})
const [acme = '', beta = ''] = keys

/** A local server whose side of each connection the test handles. */
async function startTcp(t: Test, onConnection: (socket: Socket) => void) {
  const sockets = new Set<Socket>()
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    sockets.add(socket)
    socket.on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    onConnection(socket)
  }).listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    server.close()
    for (const socket of sockets) socket.destroy()
  })
  return { port: (server.address() as AddressInfo).port, sockets }
}

const startTcpTunnel = (t: Test, target: number, name: string, key = acme, url = edge.url) =>
  startProcess(t, ['tunnel', 'tcp', `127.0.0.1:${target}`, '--name', name, '--edge', url, '--json'], {
    ADIT_API_KEY: key,
  })

/** Resolves with the public port when the tunnel is open. */
async function openTcpTunnel(t: Test, target: number, name: string, key = acme) {
  const client = startTcpTunnel(t, target, name, key)
  const [line] = await client.waitFor(/^\{"event":"open".*\}$/m)
  const { url, host } = JSON.parse(line) as { url: string; host: string }
  return { ...client, url, host, port: Number(new URL(url).port) }
}

function dial(port: number): Socket {
  const socket = connect({ port, host: '127.0.0.1', allowHalfOpen: true })
  socket.on('error', () => {})
  return socket
}

/** Reads until the peer ends its direction. Unlike an iterator, this does not end the other one. */
function readAll(socket: Socket): Promise<Buffer> {
  const chunks: Buffer[] = []
  socket.on('data', (chunk: Buffer) => chunks.push(chunk))
  return ended(socket).then(() => Buffer.concat(chunks))
}

/** Resolves when the peer has ended its direction or reset the connection. */
const ended = (socket: Socket) =>
  new Promise<void>((resolve) => {
    for (const event of ['end', 'close']) socket.once(event, resolve)
  })

/** Stops the tunnel, and returns what the edge counted for it. */
async function stopAndCount({ child, ended: exited, host }: Awaited<ReturnType<typeof openTcpTunnel>>) {
  child.kill('SIGTERM')
  assert.equal((await exited).code, 0)
  const [, line = ''] = await edge.waitFor(
    new RegExp(`^(\\{.*"host":"${host}".*"tunnel closed"\\})$`, 'm'),
    'stderr',
  )
  const [{ requests, bytesIn, bytesOut } = assert.fail(line)] = closedTunnels(line)
  return { requests, bytesIn, bytesOut }
}

/** Serves several tests, each with its own handler. */
let onConnection: (socket: Socket) => void
const sharedLocal = await startTcp({ after }, (socket) => onConnection(socket))
const shared = await openTcpTunnel({ after }, sharedLocal.port, 'shared', beta)

test('bytes go both ways, one direction may end before the other, and all are counted exactly', async (t) => {
  const local = await startTcp(t, (socket) => socket.pipe(socket))
  const tunnel = await openTcpTunnel(t, local.port, 'echo')
  assert.match(tunnel.url, /^tcp:\/\/echo\.acme\.tunnels\.test:\d+$/)
  assert.ok(tunnel.port >= firstPort && tunnel.port < firstPort + PORTS, tunnel.url)
  const sent = Buffer.alloc(3 * MB, 'both ways;')
  const sizes = await Promise.all(
    [0, 1, 2].map(async (index) => {
      const socket = dial(tunnel.port)
      const bytes = sent.subarray(0, sent.length - index)
      socket.end(bytes)
      const received = await readAll(socket)
      assert.ok(received.equals(bytes))
      return received.length
    }),
  )
  const bytes = sizes.reduce((sum, size) => sum + size, 0)
  assert.deepEqual(await stopAndCount(tunnel), { requests: 3, bytesIn: bytes, bytesOut: bytes })
})

test('a local server that ends its direction first still receives', async () => {
  const { promise: received, resolve } = Promise.withResolvers<string>()
  onConnection = async (socket) => {
    socket.end('welcome')
    resolve(String(await readAll(socket)))
  }
  const socket = dial(shared.port)
  assert.equal(String(await readAll(socket)), 'welcome')
  socket.end('and thanks')
  assert.equal(await received, 'and thanks')
})

test('a reset by either side reaches the other', async () => {
  onConnection = (socket) => socket.resume().write('ready')
  const resetByClient = dial(shared.port)
  await once(resetByClient, 'data')
  const noticed = Promise.all([...sharedLocal.sockets].map(ended))
  resetByClient.resetAndDestroy()
  await noticed
  for (const socket of sharedLocal.sockets) socket.destroy()
  const resetByServer = dial(shared.port)
  await once(resetByServer, 'data')
  const noticedByClient = ended(resetByServer)
  for (const socket of sharedLocal.sockets) socket.resetAndDestroy()
  await noticedByClient
})

test('a local server that is down: connections are closed, and the tunnel stays open', async (t) => {
  const tunnel = await openTcpTunnel(t, await freePort(), 'down')
  const socket = dial(tunnel.port)
  assert.equal((await readAll(socket)).length, 0)
  assert.equal(tunnel.child.exitCode, null)
})

test('a tunnel has the same port when it is opened again, and no HTTP requests reach it', async (t) => {
  const local = await startTcp(t, (socket) => socket.end('here'))
  const tunnel = await openTcpTunnel(t, local.port, 'again')
  const { status, body } = await fetchHost(edge, tunnel.host)
  assert.equal(status, 404)
  assert.match(String(body), /TCP tunnel/)
  tunnel.child.kill('SIGTERM')
  await tunnel.ended
  assert.equal((await openTcpTunnel(t, local.port, 'again')).port, tunnel.port)
})

test('a taken name and an edge without TCP tunnels say so', async (t) => {
  const local = await startTcp(t, (socket) => socket.end())
  const open = await Promise.all([0, 1].map((index) => openTcpTunnel(t, local.port, `db-${index}`)))
  assert.equal(new Set([shared, ...open].map(({ port }) => port)).size, 3)
  const taken = await startTcpTunnel(t, local.port, 'db-0').ended
  assert.match(taken.stderr, /name_taken.*or --pool to share it with the client that has it/)
  const otherType = await startProcess(t, ['tunnel', '9', '--name', 'db-0', '--edge', edge.url, '--json'], {
    ADIT_API_KEY: acme,
  }).ended
  assert.match(otherType.stderr, /name_taken.*is a TCP tunnel, and a name has one type\. Use another name\."/)

  const without = await startStandaloneEdge(t, ['acme'])
  const { code, stderr } = await startTcpTunnel(t, local.port, 'db', without.keys[0], without.edge.url).ended
  assert.notEqual(code, 0)
  assert.match(stderr, /tcp_disabled/)
  assert.match(stderr, /ADIT_EDGE_TCP_PORTS/)
})

test('a tunnel carries at most 500 connections; more are closed, until one of them is', async () => {
  onConnection = (socket) => {
    socket.resume().write('x')
    socket.once('end', () => socket.end())
  }
  const sockets = Array.from({ length: CONNECTIONS_MAX }, () => dial(shared.port))
  await Promise.all(sockets.map((socket) => once(socket, 'data')))
  assert.equal((await readAll(dial(shared.port))).length, 0)
  sockets[0]?.destroy()
  await until('another connection is accepted', async () => {
    const socket = dial(shared.port)
    const isAccepted = await Promise.race([
      once(socket, 'data').then(() => true),
      ended(socket).then(() => false),
    ])
    socket.destroy()
    return isAccepted
  })
  for (const socket of sockets) socket.destroy()
})

test('when the key is revoked, the connections and the port are closed, and no others', async (t) => {
  const local = await startTcp(t, (socket) => socket.write('ready'))
  const tunnel = await openTcpTunnel(t, local.port, 'db')
  onConnection = (socket) => socket.write('ready')
  const [socket, kept] = [dial(tunnel.port), dial(shared.port)]
  await Promise.all([once(socket, 'data'), once(kept, 'data')])
  const isClosed = ended(socket)
  const { tokens } = JSON.parse(readFileSync(file, 'utf8'))
  await run(t, ['tokens-file', 'remove', tokens[0].id, '--file', file], {})
  await isClosed
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 4)
  assert.match(stderr, /revoked/)
  const [error] = await once(connect(tunnel.port, '127.0.0.1'), 'error')
  assert.equal((error as NodeJS.ErrnoException).code, 'ECONNREFUSED')
  assert.equal(kept.destroyed, false)
  kept.write('still')
  kept.destroy()
})
