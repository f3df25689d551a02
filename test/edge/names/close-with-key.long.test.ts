// A program closes a tunnel whose edge is cut off from the control plane.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../../src/client/index.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { startTwoEdges } from './two-edges.ts'

test('when closing returns, an edge that is cut off carries nothing, and it closes the tunnel when it is back', async (t) => {
  const { server, edges, key, list } = await startTwoEdges(t)
  const [edge] = edges
  const client = createClient({ baseUrl: server.url, apiKey: key })
  const local = await startLocal(t)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  await until('it is listed', async () => (await list()).length === 1)
  const [open] = (await client.tunnels.list()).tunnels
  edge.relay.cut()
  assert.equal((await fetchHost(edge, tunnel.host)).status, 200)
  const { closed } = await client.tunnels.close({ id: open?.id as string })
  assert.equal(closed, true)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 503)
  edge.relay.mend()
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 1)
  assert.match(stderr, /The API key \\"first\\" closed this tunnel\./)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
})
