// Tunnel clients with a valid key that do not behave like `adit tunnel`, against an edge process.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { connect } from 'node:net'
import { test } from 'node:test'
import type { YamuxStream } from '../../../src/yamux/index.ts'
import { openRawTunnel, startStandaloneEdge, upgradeRequest } from '../../support/edges/standalone-edge.ts'
import { fetchHost, newKey, startPlane, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePorts, isListening } from '../../support/processes/ports.ts'
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
  const edge = await startTunnelEdge(t, { plane })
  const key = await newKey(plane, 'acme')
  const request = { type: 'tcp', name: 'db', pool: true } as const
  const tunnels = await Promise.all(Array.from({ length: 5 }, () => openRawTunnel(edge, key, request)))
  assert.equal(await countListening(first, last), 1)
  for (const { close } of tunnels) close()
  await until('no port is in use', async () => (await countListening(first, last)) === 0)
})

test('a client that disconnects while its key is verified leaves no tunnel open', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const edge = await startTunnelEdge(t, { plane })
  const key = await newKey(plane, 'acme')
  plane.child.kill('SIGSTOP')
  const client = connect(edge.port, '127.0.0.1')
  client.write(upgradeRequest(key, { name: 'app' }))
  await once(client, 'connect')
  await until(
    'the edge has read the request',
    async () => (await fetchHost(edge, 'x', { path: '/.adit/health' })).status === 200,
  )
  client.resetAndDestroy()
  await once(client, 'close')
  plane.child.kill('SIGCONT')
  const { host, respond } = await openRawTunnel(edge, key, { name: 'app' })
  respond(RESPONSE)
  assert.equal((await fetchHost(edge, host)).status, 200)
})

async function countListening(first: number, last: number): Promise<number> {
  let count = 0
  for (let port = first; port <= last; port += 1) if (await isListening(port)) count += 1
  return count
}
