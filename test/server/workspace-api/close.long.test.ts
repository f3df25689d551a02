// An edge that reports and does not close: the caller learns that the tunnel may still be open.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { caller, serve } from '../../support/api/server.ts'
import { addTunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'

test('a tunnel that its edge does not close is 503, and stays listed', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const call = caller(`${server.url}/workspace/v1`, server.key.token)
  const edge = await addTunnelEdge(server, 'fra-1')
  const tunnel = tunnelOf(server)
  await edge.sync({ changed: [tunnel] })
  const timer = setInterval(() => void edge.sync(), 5_000)
  t.after(() => clearInterval(timer))
  const { status, json } = await call('DELETE', `/tunnels/${tunnel.id}`)
  assert.deepEqual([status, json.error], [503, 'unavailable'])
  assert.match(
    json.message,
    /has not confirmed it\. Check whether the tunnel is still listed, and try again\.$/,
  )
  const { closeRequestedAt } = (await call('GET', `/tunnels/${tunnel.id}`)).json
  assert.notEqual(closeRequestedAt, null)
})
