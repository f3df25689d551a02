// Tunnel clients with a valid key that do not behave like `adit tunnel`, against an edge process.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { YamuxStream } from '../../../src/yamux/index.ts'
import { openRawTunnel, startStandaloneEdge, upgradeRequest } from '../../support/edges/standalone-edge.ts'
import { fetchHost, newKey, startPlane, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePorts } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

const RESPONSE = 'HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\nok'

test('a stream that the client ended together with its response carries no other request', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const tunnel = await openRawTunnel(edge, keys[0] as string)
  tunnel.onStream((stream) => stream.once('data', () => stream.end(RESPONSE)))
  for (let request = 1; request <= 3; request += 1) {
    assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
    assert.equal(tunnel.streams().length, request)
  }
  await until('all streams are closed', () => tunnel.streams().every((stream: YamuxStream) => stream.closed))
})

test('clients that open a TCP tunnel at the same time share one port', async (t) => {
  const { first, last, range } = await freePorts(10)
  const plane = await startPlane(t, ['acme'], { ADIT_TCP_PORTS: range })
  const before = await listening(first, last)
  const edge = await startTunnelEdge(t, { plane })
  const key = await newKey(plane, 'acme')
  const request = { type: 'tcp', name: 'db', pool: true } as const
  const tunnels = await Promise.all(Array.from({ length: 5 }, () => openRawTunnel(edge, key, request)))
  assert.equal((await listening(first, last)).length, before.length + 1)
  for (const { close } of tunnels) close()
  await until('no port is in use', async () => (await listening(first, last)).length === before.length)
})

test('a client that leaves while its key is verified leaves no tunnel', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  const key = await newKey(plane, 'acme')
  plane.child.kill('SIGSTOP')
  const leaving = connect(edge.port, '127.0.0.1')
  leaving.write(upgradeRequest(key, { name: 'app' }))
  await once(leaving, 'connect')
  await until(
    'the edge has read it',
    async () => (await fetchHost(edge, 'x', { path: '/.adit/health' })).status === 200,
  )
  leaving.resetAndDestroy()
  await once(leaving, 'close')
  plane.child.kill('SIGCONT')
  const { host, respond } = await openRawTunnel(edge, key, { name: 'app' })
  respond(RESPONSE)
  assert.equal((await fetchHost(edge, host)).status, 200)
})

async function listening(first: number, last: number): Promise<number[]> {
  const ports: number[] = []
  for (let port = first; port <= last; port += 1) {
    const socket = connect(port, '127.0.0.1')
    const isOpen = once(socket, 'connect').then(
      () => true,
      () => false,
    )
    if (await isOpen) ports.push(port)
    socket.destroy()
  }
  return ports
}
