// A program closes tunnels of real clients at real edges with an API key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createClient } from '../../../src/client/index.ts'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { operator } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { startTwoEdges } from './two-edges.ts'

for (const engine of engines) {
  test(`${engine}: when closing returns, no edge has the tunnel, and its client exits with the name of the key`, async (t) => {
    const { server, edges, key, list } = await startTwoEdges(t, engine)
    for (const edge of edges) await setUrl(server.services, operator, edge.id, edge.url)
    const client = createClient({ baseUrl: server.url, apiKey: key })
    const local = await startLocal(t)
    const tunnel = await openTunnel(t, { edge: edges[0], key, port: local.port, name: 'app' })
    await until('it is open at both edges', async () => (await list())[0]?.edges.length === 2)
    const statuses = () => Promise.all(edges.map(async (edge) => (await fetchHost(edge, tunnel.host)).status))
    await until('both serve it', async () => (await statuses()).every((status) => status === 200))
    const [open] = (await client.tunnels.list()).tunnels
    assert.equal(open?.url, tunnel.url)

    const { id = '' } = open ?? {}
    assert.deepEqual(await client.tunnels.close({ id }), { id, closed: true })
    assert.deepEqual(await statuses(), [404, 404])
    assert.deepEqual((await client.tunnels.list()).tunnels, [])
    const { code, stderr } = await tunnel.ended
    assert.equal(code, 1)
    assert.match(stderr, /"error":"closed","message":"The API key \\"first\\" closed this tunnel\."/)
    assert.deepEqual((await client.tunnels.list()).tunnels, [], 'it was not opened again')
    const again = await openTunnel(t, { edge: edges[1], key, port: local.port, name: 'app' })
    assert.equal((await fetchHost(edges[1], again.host)).status, 200, 'the name is free')
  })

  test(`${engine}: of several clients with one name, only the closed one ends`, async (t) => {
    const { server, edges, key, list } = await startTwoEdges(t, engine)
    const client = createClient({ baseUrl: server.url, apiKey: key })
    const local = await startLocal(t)
    const options = { edge: edges[0], key, port: local.port, name: 'app', flags: ['--pool'] }
    const pool = [await openTunnel(t, options), await openTunnel(t, options)]
    await until('both are listed', async () => (await list()).length === 2)
    const { tunnels } = await client.tunnels.list({ name: 'app' })
    await client.tunnels.close({ id: tunnels[0]?.id as string })
    assert.equal((await fetchHost(edges[0], pool[0]?.host as string)).status, 200)
    const ended = await Promise.race(pool.map(async (tunnel, index) => ({ index, ...(await tunnel.ended) })))
    assert.equal(ended.code, 1)
    assert.equal(pool[1 - ended.index]?.child.exitCode, null)
    assert.deepEqual(
      (await client.tunnels.list()).tunnels.map(({ id }) => id),
      [tunnels[1]?.id],
    )
  })
}
