// The whole product in processes: how soon the tunnels of a revoked or expired key are closed.
import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import { caller } from '../support/api/server.ts'
import {
  fetchHost,
  newKey,
  openSocket,
  openTunnel,
  type Plane,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../support/edges/tunnels.ts'
import { until } from '../support/until.ts'

/** Long enough to open a tunnel on a busy machine. */
const EXPIRES_AFTER_MS = 6_000

const revocations: Record<string, (plane: Plane, keyId: string) => Promise<unknown>> = {
  'adit admin': (plane, keyId) => plane.admin('key', 'revoke', keyId, '--yes'),
  async 'the API'(plane, keyId) {
    const other = await newKey(plane, 'acme')
    assert.equal((await caller(`${plane.url}/api/v1`, other)('DELETE', `/tokens/${keyId}`)).status, 200)
  },
  async 'the dashboard'(plane, keyId) {
    const owner = openBrowser(plane.url)
    const email = 'ann@example.com'
    const output = await plane.admin('user', 'invite', email, '--workspace', 'acme', '--role', 'owner')
    const [, link] = /#([\w-]{43})/.exec(output) ?? assert.fail(output)
    await owner.post('/links/redeem', { link, email, name: 'Ann', password: PASSWORD })
    assert.equal((await owner.remove(`/workspaces/acme/keys/${keyId}`)).status, 200)
  },
}

for (const [by, revoke] of Object.entries(revocations))
  test(`a key revoked by ${by}: its tunnels and their connections are closed within a second, and the tunnel client gets the reason`, async (t) => {
    const plane = await startPlane(t, ['acme'])
    const local = await startLocal(t)
    const edge = await startTunnelEdge(t, { plane })
    const key = await newKey(plane, 'acme')
    const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
    const other = await openTunnel(t, {
      edge,
      key: await newKey(plane, 'acme'),
      port: local.port,
      name: 'other',
    })
    const socket = await openSocket(edge, tunnel.host)
    const closed = once(socket, 'close')
    await revoke(plane, await findKeyId(plane, key))
    const acknowledged = performance.now()
    await closed
    await until('the tunnel is closed', async () => (await fetchHost(edge, tunnel.host)).status === 404)
    const took = performance.now() - acknowledged
    t.diagnostic(`closed ${Math.round(took)} ms after the acknowledgement`)
    assert.ok(took < 1_000, `${took} ms`)
    const { code, stderr } = await tunnel.ended
    assert.equal(code, 4)
    assert.match(stderr, /closed the tunnel: this API key was revoked\. Use another key\./)
    assert.equal((await fetchHost(edge, other.host)).status, 200)
  })

test('a key that expires: its tunnels are closed at that instant, and the tunnel client gets the reason', async (t) => {
  const plane = await startPlane(t, ['acme'])
  const local = await startLocal(t)
  const edge = await startTunnelEdge(t, { plane })
  const expiresAt = Math.ceil(Date.now() / 1_000) * 1_000 + EXPIRES_AFTER_MS
  const expires = new Date(expiresAt).toISOString()
  const key = await plane.admin('key', 'create', '--workspace', 'acme', '--expires', expires)
  const tunnel = await openTunnel(t, { edge, key, port: local.port, name: 'app' })
  const socket = await openSocket(edge, tunnel.host)
  await once(socket, 'close')
  const late = Date.now() - expiresAt
  t.diagnostic(`closed ${late} ms after the expiry`)
  assert.ok(late > -1_000 && late < 1_000, `${late} ms`)
  assert.equal((await fetchHost(edge, tunnel.host)).status, 404)
  const { code, stderr } = await tunnel.ended
  assert.equal(code, 4)
  assert.match(stderr, /closed the tunnel: this API key has expired\. Use another key\./)
})

/** The id of a key, from the edge API. */
async function findKeyId(plane: Plane, key: string): Promise<string> {
  const credential = await plane.admin('edge', 'create', `asks-${Date.now()}`)
  const call = caller(`${plane.url}/edge/v1`, credential)
  return (await call('POST', '/keys/verify', { json: { key } })).json.keyId
}
