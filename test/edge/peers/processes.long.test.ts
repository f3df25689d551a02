// A cluster of real processes: control plane, edges and a tunnel client.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import {
  type Edge,
  fetchHost,
  newKey,
  openTunnel,
  startLocal,
  startPlane,
  startTunnelEdge,
} from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

for (const engine of engines)
  test(`${engine}: each edge of a group serves a tunnel, and an edge of another group does not`, async (t) => {
    const plane = await startPlane(t, ['acme'], {
      ADIT_DATABASE_URL: await createMigratedDatabase(t, engine),
    })
    await plane.admin('edge-group', 'create', 'eu')
    const start = async (name: string, group: string) => {
      const ADIT_EDGE_KEY = await plane.admin('edge', 'create', name, '--group', group)
      const ADIT_EDGE_PEER_PORT = String(await freePort())
      const env = { ADIT_URL: plane.url, ADIT_EDGE_KEY, ADIT_EDGE_PEER_PORT, ADIT_EDGE_HOST: '127.0.0.1' }
      return startTunnelEdge(t, { env })
    }
    const [serving, entry] = [await start('serving', 'default'), await start('entry', 'default')]
    const foreign = await start('foreign', 'eu')
    const key = await newKey(plane, 'acme')
    const { port } = await startLocal(t)
    const { host } = await openTunnel(t, { edge: serving, key, port, name: 'app' })
    const status = async (edge: Edge) => (await fetchHost(edge, host, { path: '/hello' })).status
    assert.equal(await status(serving), 200)
    await until('the other edge serves it', async () => (await status(entry)) === 200)
    const { body } = await fetchHost(entry, host, { path: '/hello' })
    assert.equal(JSON.parse(body.toString()).url, '/hello')
    assert.equal(await status(foreign), 404)
    assert.match(await plane.admin('edge', 'list'), /entry +default +127\.0\.0\.1:\d+ /)

    serving.child.kill('SIGKILL')
    await until('no edge has the client', async () => (await status(entry)) !== 200)
  })
