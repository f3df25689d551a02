// An edge that drains moves its clients first: the others serve their tunnels without interruption.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { addEdge, operator, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { fetchHost, openTunnel, startLocal, startTunnelEdge } from '../../support/edges/tunnels.ts'
import { freePort } from '../../support/processes/ports.ts'
import { until } from '../../support/until.ts'

async function startEdge(t: Test, server: TestServer, name: string) {
  const { id, token } = await addEdge(server, name)
  const edge = await startTunnelEdge(t, {
    env: {
      ADIT_URL: server.url,
      ADIT_EDGE_KEY: token,
      ADIT_EDGE_HOST: '127.0.0.1',
      ADIT_EDGE_PEER_PORT: String(await freePort()),
    },
  })
  await setUrl(server.services, operator, id, edge.url)
  return edge
}

for (const connections of [1, 2])
  test(`no GET fails while the edge of a client with ${connections} connections drains`, async (t) => {
    const server = await serve(t, { engine: 'sqlite' })
    const draining = await startEdge(t, server, 'draining')
    const others = [await startEdge(t, server, 'one'), await startEdge(t, server, 'two')]
    const { port } = await startLocal(t)
    const { host } = await openTunnel(t, {
      ...{ edge: draining, key: server.key.token, port, name: 'app' },
      flags: ['--edges', String(connections)],
    })
    const get = async (edge: { port: number }) => (await fetchHost(edge, host)).status
    for (const edge of others) await until('it is served', async () => (await get(edge)) === 200)
    let isOver = false
    const statuses: number[] = []
    const visitors = others.map(async (edge) => {
      while (!isOver) statuses.push(await get(edge))
    })
    draining.child.kill('SIGTERM')
    await draining.ended
    const served = statuses.length
    await until('requests after the end', () => statuses.length > served + 50)
    isOver = true
    await Promise.all(visitors)
    assert.deepEqual([...new Set(statuses)], [200])
  })
