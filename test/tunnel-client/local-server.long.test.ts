// Local servers and visitors that do not do their part, and what that costs the tunnel client.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Socket } from 'node:net'
import { test } from 'node:test'
import { LocalServer } from '../../src/tunnel-client/local-server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost, openTunnel } from '../support/edges/tunnels.ts'
import { listen } from '../support/network/listen.ts'
import { until } from '../support/until.ts'
import { sessionPair } from '../yamux/support.ts'

const MIB = 1024 * 1024
const BUFFERED_BYTES_MAX = 128 * MIB
/** More than fit, at a full window each. */
const STREAMS = 600
/** More than the streams that a tunnel client accepts. */
const REQUESTS = 4_500
const CONCURRENT = 50

async function startTcp(t: Test, onConnection: (socket: Socket) => void): Promise<number> {
  const server = createServer({ allowHalfOpen: true }, (socket) => {
    socket.on('error', () => {})
    atEnd(t, () => socket.destroy())
    onConnection(socket)
  })
  return listen(t, server)
}

test('a local server that never closes its connections leaves the tunnel usable', async (t) => {
  const port = await startTcp(t, (socket) =>
    socket.on('data', () =>
      socket.write('HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\nok'),
    ),
  )
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const { host } = await openTunnel(t, { edge, key: keys[0] as string, port, name: 'app' })
  const statuses = new Set<number>()
  for (let sent = 0; sent < REQUESTS; sent += CONCURRENT) {
    const responses = Array.from({ length: CONCURRENT }, () => fetchHost(edge, host))
    for (const { status } of await Promise.all(responses)) statuses.add(status)
  }
  assert.deepEqual([...statuses], [200])
})

test('visitors that do not read fill the memory of a tunnel client up to a limit, and others are served', async (t) => {
  const body = Buffer.alloc(4 * MIB, 'x')
  const port = await startTcp(t, (socket) =>
    socket.once('data', (request) => {
      if (String(request) === 'large') socket.end(body)
      else socket.end('small')
    }),
  )
  const localServer = new LocalServer({ target: { host: '127.0.0.1', port }, isHttp: true })
  const { buffers } = localServer
  const { client: edge } = await sessionPair(
    t,
    {},
    { maxStreams: STREAMS + 1, pressure: buffers, onStream: (stream) => localServer.serve(stream) },
  )
  let largest = 0
  let resets = 0
  for (let index = 0; index < STREAMS; index += 1) {
    const stream = edge.open()
    stream.once('close', () => {
      resets += 1
    })
    stream.write('large')
  }
  await until('some are reset', () => {
    largest = Math.max(largest, buffers.bytes)
    return resets > 0
  })
  assert.ok(largest > BUFFERED_BYTES_MAX / 2 && largest <= BUFFERED_BYTES_MAX + MIB, `${largest} bytes`)
  const stream = edge.open()
  stream.end('other')
  assert.equal(String((await once(stream, 'data'))[0]), 'small')
  edge.session.close()
  await until('nothing is accounted for', () => buffers.bytes === 0)
})
