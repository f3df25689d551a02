// What an edge tells a load balancer: whether to send requests to it, and why not.
import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import {
  openOwnTunnel,
  openRawTunnel,
  startStandaloneEdge,
  upgradeRequest,
} from '../support/edges/standalone-edge.ts'
import { type Edge, fetchHost, startTunnelEdge } from '../support/edges/tunnels.ts'
import { connectRaw } from '../support/network/raw.ts'
import { until } from '../support/until.ts'

const DESCRIPTORS = 600
/** Nearly as many as an edge with so few descriptors accepts, which is 344. */
const CROWDED = 312

async function ready(edge: Edge, host = 'x', method = 'GET') {
  const { status, body, headers } = await fetchHost(edge, host, { path: '/.adit/ready', method })
  assert.equal(headers['cache-control'], 'no-store')
  return { status, body: method === 'HEAD' ? undefined : JSON.parse(String(body)) }
}

const { edge, keys } = await startStandaloneEdge(
  { after },
  ['acme'],
  { ADIT_EDGE_STOP_DELAY: '300' },
  DESCRIPTORS,
)
const [key = ''] = keys
const READY = { status: 200, body: { status: 'ready' } }

test('an edge is ready on every host, whoever has a tunnel there, and for each method', async (t) => {
  const { host, local } = await openOwnTunnel(t, edge, key)
  for (const name of [host, 'x', '127.0.0.1', 'tunnels.test', 'nothing.acme.tunnels.test'])
    assert.deepEqual(await ready(edge, name), READY, name)
  assert.equal((await ready(edge, host, 'HEAD')).status, 200)
  assert.deepEqual(local.requests, [])
})

test('an edge whose connections are nearly all in use is overloaded, until some are closed', async (t) => {
  const tunnel = await openRawTunnel(edge, key)
  t.after(() => tunnel.close())
  const sockets = new Set<Socket>()
  const open = () => {
    const socket = connect(edge.port, '127.0.0.1').on('error', () => {})
    socket.once('close', () => sockets.delete(socket))
    socket.write(`GET / HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n`)
    sockets.add(socket)
  }
  atEnd(t, () => {
    for (const socket of sockets) socket.destroy()
  })
  // The edge closes some whose request it has not read yet, because they count as idle. It may be full then.
  await until('the edge is overloaded', async () => {
    while (sockets.size < CROWDED) open()
    const result = await ready(edge).catch(() => undefined)
    return result?.status === 503 && result.body.error === 'overloaded'
  })
  for (const socket of sockets) socket.destroy()
  await until('the edge is ready', async () => (await ready(edge)).status === 200)
})

test('an edge that reaches no control plane is cut off', async (t) => {
  const env = { ADIT_URL: 'http://127.0.0.1:9', ADIT_EDGE_KEY: `adit_edge_${'x'.repeat(43)}` }
  const { status, body } = await ready(await startTunnelEdge(t, { env }))
  assert.deepEqual([status, body.error], [503, 'cut_off'])
})

test('after SIGTERM, an edge serves its tunnels until the delay is over, and opens no others', async (t) => {
  const { host, child } = await openOwnTunnel(t, edge, key)
  edge.child.kill('SIGTERM')
  await until('the edge drains', async () => (await ready(edge)).status === 503)
  assert.equal((await ready(edge, host)).body.error, 'draining')
  assert.equal((await fetchHost(edge, host)).status, 200)
  const late = connectRaw(edge.url)
  late.write(upgradeRequest(key, { name: 'late' }))
  await late.receives('HTTP/1.1 503 ')
  // The client looks for another edge, and keeps its connection to this one.
  assert.equal((await fetchHost(edge, host)).status, 200)
  assert.equal(child.exitCode, null)
  // A second signal ends the delay; one that follows at once is taken for the same.
  const isStopped = edge.ended.then(() => true)
  await until('a second signal stops the edge', () => {
    edge.child.kill('SIGTERM')
    return Promise.race([isStopped, new Promise((resolve) => setTimeout(resolve, 200))])
  })
})
