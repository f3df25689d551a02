// Header limits: the edge rejects requests above them, and no request disconnects the tunnel client.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer } from 'node:http'
import type { AddressInfo, Socket } from 'node:net'
import { test } from 'node:test'
import { atEnd, type Test } from '../support/cleanup.ts'
import { sendRaw } from '../support/raw.ts'
import { openRawTunnel, startStandaloneEdge } from '../support/standalone-edge.ts'
import { fetchHost, openTunnel, startTunnel } from '../support/tunnels.ts'
import { until } from '../support/until.ts'

const head = (host: string, headers: string) =>
  `GET / HTTP/1.1\r\nHost: ${host}\r\nConnection: close\r\n${headers}\r\n`

test('no request headers make a tunnel unavailable to others', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const tunnel = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const { host } = tunnel
  const heads = {
    'many headers': head(host, 'a:\r\n'.repeat(1_100)),
    'one large header': head(host, `Cookie: ${'a'.repeat(16_300)}\r\n`),
    'a long port': head(`${host}:${'0'.repeat(16_000)}`, ''),
    'many forwarded addresses': head(host, `X-Forwarded-For: ${'1,'.repeat(8_100)}\r\n`),
  }
  for (const [what, bytes] of Object.entries(heads)) {
    const responses = await Promise.all(Array.from({ length: 20 }, () => sendRaw(edge.url, bytes)))
    for (const { status } of responses) assert.ok([200, 404, 431].includes(status), `${what}: ${status}`)
    assert.equal((await fetchHost(edge, host)).status, 200, what)
  }
  assert.deepEqual(
    tunnel.events().filter(({ event }) => event === 'lost'),
    [],
  )
})

test('a request may have 200 headers and 32 names in Connection; more is 431 with the reason', async (t) => {
  const { edge, keys, local } = await startStandaloneEdge(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port: local.port, name: 'app' })
  const names = (count: number) => `Connection: ${Array(count).fill('a').join(',')}\r\n`
  // Host and Connection are two of them.
  const cases: [headers: string, status: number][] = [
    ['a:\r\n'.repeat(198), 200],
    ['a:\r\n'.repeat(199), 431],
    [names(31), 200],
    [names(32), 431],
    [names(5_900), 431],
    [names(16).repeat(2), 431],
  ]
  for (const [headers, expected] of cases) {
    const { status, body } = await sendRaw(edge.url, head(host, headers))
    assert.equal(status, expected, headers.slice(0, 100))
    if (expected === 431) assert.match(body, /at most (200 headers|32 names in Connection)/)
  }
  const upgrading = 'Connection: Upgrade\r\nUpgrade: x\r\n'
  const upgrade = await sendRaw(edge.url, head(host, upgrading + 'a:\r\n'.repeat(200)))
  assert.equal(upgrade.status, 431)
  const own = head('x', 'a:\r\n'.repeat(200)).replace('/', '/.adit/health')
  assert.equal((await sendRaw(edge.url, own)).status, 431)
})

test('headers that Connection names are removed, however many names there are in a response', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const { host, addConnection } = await openRawTunnel(edge, keys[0] as string)
  const { respond } = await addConnection()
  const named = Array.from({ length: 900 }, (_, index) => `x-${index}`)
  respond(
    `HTTP/1.1 200 OK\r\nContent-Length: 0\r\nX-Kept: yes\r\nConnection: ${named.join(', ')}\r\n` +
      `${named.map((name) => `${name}: 1\r\n`).join('')}\r\n`,
  )
  const { status, headers } = await fetchHost(edge, host)
  assert.equal(status, 200)
  assert.equal(headers['x-kept'], 'yes')
  assert.deepEqual(
    Object.keys(headers).filter((name) => /^x-\d/.test(name)),
    [],
  )
})

/** A fake edge whose connections to the tunnel client are driven by the test. */
async function startScriptedEdge(t: Test) {
  const connections = new Set<Socket>()
  let openings = 0
  const server = createServer((request, response) => {
    request.resume()
    if (request.method === 'POST') openings += 1
    response.writeHead(201, { 'content-type': 'application/json' })
    response.end(
      JSON.stringify({
        id: 'x'.repeat(32),
        name: 'app',
        host: 'app.test',
        url: 'http://x',
        connections: 100,
      }),
    )
  })
  server.on('upgrade', (_request, socket: Socket) => {
    socket.on('error', () => {})
    socket.on('end', () => socket.destroy())
    socket.resume()
    socket.write('HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: adit-tunnel\r\n\r\n')
    connections.add(socket)
    socket.once('close', () => connections.delete(socket))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  atEnd(t, () => {
    for (const socket of connections) socket.destroy()
    server.close()
    server.closeAllConnections()
  })
  const { port } = server.address() as AddressInfo
  return { url: `http://127.0.0.1:${port}`, connections, openings: () => openings }
}

test('the tunnel client responds with 502 to malformed requests, and keeps the tunnel', async (t) => {
  const edge = await startScriptedEdge(t)
  const tunnel = startTunnel(t, { edge, key: 'any', port: 9, name: 'app' })
  for (let round = 0; round < 5; round++) {
    await until('four connections are ready', () => edge.connections.size === 4)
    const responses = [...edge.connections].map(async (socket) => {
      let received = ''
      socket.on('data', (chunk) => {
        received += chunk
      })
      socket.write(
        round % 2 === 0 ? 'nonsense\r\n\r\n' : `GET / HTTP/1.1\r\na: ${'a'.repeat(40_000)}\r\n\r\n`,
      )
      await once(socket, 'close')
      return received
    })
    for (const received of await Promise.all(responses)) assert.match(received, /^HTTP\/1\.1 502 /)
  }
  assert.equal(edge.openings(), 1)
  assert.deepEqual(
    tunnel.events().map(({ event }) => event),
    ['open'],
  )
})

test('a tunnel client that loses all connections reconnects and keeps its tunnel', async (t) => {
  const edge = await startScriptedEdge(t)
  const tunnel = startTunnel(t, { edge, key: 'any', port: 9, name: 'app' })
  for (let round = 0; round < 3; round++) {
    await until('four connections are ready', () => edge.connections.size === 4)
    const lost = [...edge.connections]
    for (const socket of lost) socket.destroy()
    await until('all are closed', () => !lost.some((socket) => edge.connections.has(socket)))
  }
  await until('four connections are ready', () => edge.connections.size === 4)
  assert.equal(edge.openings(), 1)
  assert.deepEqual(
    tunnel.events().map(({ event }) => event),
    ['open'],
  )
})
