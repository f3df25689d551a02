// Access rules that are set in the dashboard, at real edges of a real control plane.
import assert from 'node:assert/strict'
import { join } from 'node:path'
import { test } from 'node:test'
import { addMember } from '../../support/accounts/users.ts'
import { addEdge, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createFolder } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'

async function startEdge(t: Test, server: TestServer, name: string) {
  const { token } = await addEdge(server, name)
  const env = { ADIT_URL: server.url, ADIT_EDGE_KEY: token, ADIT_EDGE_FOLDER: join(createFolder(t), name) }
  return startTunnelEdge(t, { env })
}

test('rules of the dashboard apply within a second at every edge, and to tunnels that are opened later', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const admin = await addMember(server, 'Ann', 'admin')
  const edges = [await startEdge(t, server, 'one'), await startEdge(t, server, 'two')] as const
  const local = await startLocal(t)
  const tunnel = { key: server.key.token, port: local.port, name: 'app', flags: ['--pool'] }
  const [first] = await Promise.all(edges.map((edge) => openTunnel(t, { ...tunnel, edge })))
  const host = first?.host ?? ''
  const authorization = `Basic ${Buffer.from('ann:correct horse').toString('base64')}`
  const statuses = (headers: Record<string, string> = {}) =>
    Promise.all(edges.map(async (edge) => (await fetchHost(edge, host, { headers })).status))
  const setRules = async (rules: object) => {
    assert.equal((await admin.post('/workspaces/acme/names/app/access', rules)).status, 200)
    return performance.now()
  }
  assert.deepEqual(await statuses(), [200, 200])

  const setAt = await setRules({ basicAuth: { user: 'ann', password: 'correct horse' } })
  await until('both edges ask for the password', async () =>
    (await statuses()).every((status) => status === 401),
  )
  const took = performance.now() - setAt
  t.diagnostic(`applied after ${Math.round(took)} ms`)
  assert.ok(took < 1_000, `${took} ms`)
  assert.deepEqual(await statuses({ authorization }), [200, 200])
  assert.equal(local.requests.at(-1)?.headers.authorization, undefined)

  const later = await startEdge(t, server, 'three')
  const opened = await openTunnel(t, { ...tunnel, edge: later })
  assert.deepEqual((opened.events()[0] as { access?: object }).access, { basicAuth: true, allowIp: false })
  assert.equal((await fetchHost(later, host)).status, 401)

  await setRules({ allowIp: ['203.0.113.0/24'] })
  const inside = { 'x-forwarded-for': '203.0.113.9' }
  await until('only the network is allowed', async () => {
    const [outside, allowed] = [await statuses({ authorization }), await statuses(inside)]
    return outside.every((status) => status === 403) && allowed.every((status) => status === 200)
  })
  await setRules({})
  await until('everybody is allowed', async () => (await statuses()).every((status) => status === 200))
})
