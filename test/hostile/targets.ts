// Processes that connections are broken to, with their surfaces.
import assert from 'node:assert/strict'
import type { Test } from '../support/cleanup.ts'
import { createMigratedDatabase } from '../support/databases/create.ts'
import { upgradeRequest } from '../support/edges/standalone-edge.ts'
import {
  fetchHost,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import type { Surface } from '../support/network/broken-connections.ts'
import { run, startServing } from '../support/processes/process.ts'

/** A server process, and its two surfaces for programs. */
export async function startControlPlane(t: Test) {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'), ADIT_LOG_LEVEL: 'warn' }
  const edge = (await run(t, ['admin', 'edge', 'create', 'fra-1'], env)).stdout.trim()
  const serving = await startServing(t, env)
  const { token } = serving
  const port = Number(new URL(serving.url).port)
  const api: Surface = {
    host: 'adit',
    headers: `Authorization: Bearer ${token}\r\n`,
    get: '/api/v1/workspace',
    post: '/api/v1/tokens',
    body: '{"label":"a"}',
    more: {
      'large response': 'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n',
      'large responses and CONNECT':
        'GET /docs/scalar.js HTTP/1.1\r\nHost: adit\r\n\r\n'.repeat(10) +
        'CONNECT x:1 HTTP/1.1\r\nHost: adit\r\n\r\n',
    },
  }
  const edges: Surface = {
    host: 'adit',
    headers: `Authorization: Bearer ${edge}\r\n`,
    // A stream of server-sent events.
    get: '/edge/v1/key-changes',
    post: '/edge/v1/keys/verify',
    body: JSON.stringify({ key: token }),
  }
  const probe = async () => {
    const headers = { authorization: `Bearer ${token}` }
    const { status } = await fetchHost({ port }, 'adit', { path: '/api/v1/workspace', headers })
    assert.equal(status, 200)
  }
  return { target: { ...serving, port, probe }, api, edges }
}

/** As many idle connections as a tunnel client may keep open beyond those before. */
const IDLE_MAX = 10

/** An edge process with an open tunnel, and its three surfaces. */
export async function startEdge(t: Test) {
  const plane = await startPlane(t, ['acme'])
  const key = await newKey(plane, 'acme')
  const edge = await startTunnelEdge(t, { plane })
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const own: Surface = {
    host: 'x',
    headers: `Authorization: Bearer ${key}\r\n`,
    get: '/.adit/health',
    post: '/.adit/connect',
    body: '{"name":"other"}',
    more: { 'tunnel client': upgradeRequest(key) },
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
    const events = tunnel.events().filter(({ event }) => event !== 'request')
    const context = `${body.subarray(0, 200)}\nevents of the client: ${JSON.stringify(events)}`
    assert.deepEqual([status, body.length], [200, 1_000], context)
  }
  const serverPort = Number(new URL(plane.url).port)
  return { target: { ...edge, probe, idleMax: IDLE_MAX, serverPort }, own, tunneled, key }
}
