// Two edges as processes, with the control plane: it tells each where the other is, and what it has.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import {
  fetchHost,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

test('a request at an edge without the client is forwarded, and 404 after the client is gone', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const start = async () =>
    startTunnelEdge(t, { plane, env: { ADIT_EDGE_PEER_PORT: String(await freePort()) } })
  const [serving, entry] = [await start(), await start()]
  const local = await startLocal(t)
  const key = await newKey(plane, 'acme')
  const tunnel = await openTunnel(t, { edge: serving, key, port: local.port, name: 'app' })
  const status = async () => (await fetchHost(entry, tunnel.host)).status
  await until('the request is forwarded', async () => (await status()) === 200)
  const { body } = await fetchHost(entry, tunnel.host, { method: 'POST', body: Buffer.alloc(1e6) })
  assert.equal(JSON.parse(String(body)).received, 1e6)
  tunnel.child.kill()
  await until('the tunnel is closed', async () => (await status()) === 404)
})
