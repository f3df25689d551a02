// Connections to a tunnel edge that break at every byte: those of its own API, of requests through a
// tunnel, and of the tunnel itself.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { openingsFor, randomCuts, type Surface } from '../support/broken-connections.ts'
import { fetchHost, newKey, openTunnel, startLocal, startPlane, startTunnelEdge } from '../support/tunnels.ts'
import { prefixes } from './form.ts'
import { withstand } from './withstand.ts'

/** As many idle connections as a tunnel client may keep open beyond those before. */
const IDLE_MAX = 10

/** An edge process with an open tunnel, and its three surfaces. */
async function start(t: TestContext) {
  const plane = await startPlane(t, ['acme'])
  const key = await newKey(plane, 'acme')
  const edge = await startTunnelEdge(t, { plane })
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const authorization = `Bearer ${key}`
  const own: Surface = {
    host: 'x',
    headers: `Authorization: ${authorization}\r\n`,
    get: '/.adit/health',
    post: '/.adit/connect',
    body: '{"name":"other"}',
    more: {
      'tunnel client':
        'GET /.adit/connect HTTP/1.1\r\nHost: x\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n' +
        'Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n' +
        `Sec-WebSocket-Protocol: adit-tunnel.v1\r\nAuthorization: ${authorization}\r\n\r\n`,
    },
  }
  const tunneled: Surface = {
    host: tunnel.host,
    get: '/bytes/100000',
    post: '/',
    body: '{"label":"a"}',
    more: { 'slow response': `GET /drip/20 HTTP/1.1\r\nHost: ${tunnel.host}\r\n\r\n` },
  }
  const probe = async () => {
    assert.equal((await fetchHost(edge, 'x', { path: '/.adit/health' })).status, 200)
    const { status, body } = await fetchHost(edge, tunnel.host, { path: '/bytes/1000' })
    assert.deepEqual([status, body.length], [200, 1_000])
  }
  return { target: { ...edge, probe, idleMax: IDLE_MAX }, own, tunneled }
}

test('edge: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const { target, own } = await start(t)
  const made = await withstand(target, prefixes(openingsFor(own)))
  t.diagnostic(`${made} connections`)
})

test('tunnel: connections broken after every byte crash nothing and leak nothing', async (t) => {
  const { target, tunneled } = await start(t)
  const made = await withstand(target, prefixes(openingsFor(tunneled)))
  t.diagnostic(`${made} connections`)
})

test('edge: concurrent broken connections of every kind crash nothing and leak nothing', async (t) => {
  const { target, own, tunneled } = await start(t)
  const openings = [...openingsFor(own), ...openingsFor(tunneled)]
  const made = await withstand(target, randomCuts(openings, { seed: 'hostile', count: 2_000 }))
  assert.equal(made, 2_000)
})
