// A tunnel client that started when fewer edges were up than it wants connections to.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { operator } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { startControlPlane, startEdge } from './two-edges.ts'

for (const engine of engines)
  test(`${engine}: a client with one edge connects to others soon after they appear, and stays open`, async (t) => {
    const { server, key, list } = await startControlPlane(t, engine)
    const start = async (name: string) => {
      const edge = await startEdge(t, server, name)
      await setUrl(server.services, operator, edge.id, edge.url)
      return edge
    }
    const one = await start('one')
    const { port } = await startLocal(t)
    const tunnel = await openTunnel(t, { edge: one, key, port, name: 'app', flags: ['--edges', '3'] })
    const at = async () => (await list())[0]?.edges.map(({ name }) => name).sort()
    await until('it is listed', async () => (await at())?.length === 1)
    for (const name of ['two', 'three']) {
      const edge = await start(name)
      const before = (await at())?.length ?? 0
      await until(`it connects to ${name}`, async () => (await at())?.length === before + 1, 60_000)
      await until('served there', async () => (await fetchHost(edge, tunnel.host)).status === 200)
    }
    assert.deepEqual(await at(), ['one', 'three', 'two'])
    // The edge from the start is gone for good, and another one takes its place.
    one.child.kill('SIGKILL')
    await start('four')
    await until('it connects to four', async () => (await at())?.join() === 'four,three,two', 90_000)
    assert.deepEqual(
      tunnel
        .events()
        .map(({ event }) => event)
        .filter((event) => event !== 'request'),
      ['open'],
    )
  })

test('an edge with two workers tells its clients of edges that appear, too', async (t) => {
  const { server, key, list } = await startControlPlane(t)
  const [one, two] = [
    await startEdge(t, server, 'one', { ADIT_EDGE_WORKERS: '2' }),
    await startEdge(t, server, 'two'),
  ]
  await setUrl(server.services, operator, one.id, one.url)
  const { port } = await startLocal(t)
  const tunnel = await openTunnel(t, { edge: one, key, port, name: 'app' })
  await setUrl(server.services, operator, two.id, two.url)
  await until('it connects', async () => (await list())[0]?.edges.length === 2, 60_000)
  await until('served there', async () => (await fetchHost(two, tunnel.host)).status === 200)
})
