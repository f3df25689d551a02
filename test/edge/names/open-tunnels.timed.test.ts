// The time from the close of a tunnel in the dashboard until its edge has closed it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { engines } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { attempt, startTwoEdges } from './two-edges.ts'

for (const engine of engines)
  test(`${engine}: a tunnel closed in the dashboard is closed within a second, and its client exits with the reason`, async (t) => {
    const { admin, edges, key, list, listed } = await startTwoEdges(t, engine)
    const local = await startLocal(t)
    const tunnel = await openTunnel(t, { edge: edges[0], key, port: local.port, name: 'app' })
    await openTunnel(t, { edge: edges[0], key, port: local.port, name: 'other' })
    await until('both are listed', async () => (await list()).length === 2)
    const [{ id } = assert.fail()] = await list()
    assert.equal((await admin.remove(`/workspaces/acme/tunnels/${id}`)).status, 200)
    const closedAt = performance.now()
    await until('the tunnel is closed', async () => (await fetchHost(edges[0], tunnel.host)).status === 404)
    const took = performance.now() - closedAt
    t.diagnostic(`closed after ${Math.round(took)} ms`)
    assert.ok(took < 1_000, `${took} ms`)
    const { code, stderr } = await tunnel.ended
    assert.equal(code, 1)
    assert.match(stderr, /"error":"closed","message":"[^"]*Ann[^"]*closed/)
    await until('it is not listed', async () => (await list()).length === 1)
    assert.deepEqual(await listed(), ['other at one'])
    assert.equal(await attempt(edges[0], key, { name: 'app' }), undefined)
  })
