// One tunnel client with connections to two of three edges: one tunnel, which survives the loss of an edge.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { decodeHour } from '../../../src/server/store/usage/hours.ts'
import { addMember } from '../../support/accounts/users.ts'
import { operator, serve } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { fetchHost, openTunnel, startLocal } from '../../support/edges/tunnels.ts'
import { until } from '../../support/until.ts'
import { startEdge } from './two-edges.ts'

interface Listed {
  id: string
  edges: { name: string }[]
  requests: number
}

/** A tunnel that is open at two edges, of three by default. */
async function startCluster(t: Test, engine: Engine, names = ['one', 'two', 'three']) {
  const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '1' } })
  const admin = await addMember(server, 'Ann', 'admin')
  const edges = new Map<string, Awaited<ReturnType<typeof startEdge>>>()
  for (const name of names) {
    const edge = await startEdge(t, server, name)
    await setUrl(server.services, operator, edge.id, edge.url)
    edges.set(name, edge)
  }
  const edgeNamed = (name: string) => edges.get(name) as Awaited<ReturnType<typeof startEdge>>
  const local = await startLocal(t)
  const key = server.key.token
  const list = async () => (await admin.get('/workspaces/acme/tunnels')).json.tunnels as Listed[]
  /** The names of the edges that have the tunnel. */
  const at = async () => {
    const tunnels = await list()
    assert.ok(tunnels.length <= 1, 'one tunnel')
    return tunnels[0]?.edges.map(({ name }) => name).sort() ?? []
  }
  await until('all edges report', async () => {
    const { json } = await admin.get('/workspaces/acme/edges')
    return json.edges.every(({ isConnected }: { isConnected: boolean }) => isConnected)
  })
  const tunnel = await openTunnel(t, { edge: edgeNamed('one'), key, port: local.port, name: 'app' })
  await until('two edges', async () => (await at()).length === 2)
  const get = async (name: string) => (await fetchHost(edgeNamed(name), tunnel.host)).status
  // The control plane lists a connection before its client knows that it is open.
  for (const name of await at()) await until('served', async () => (await get(name)) === 200)
  return { server, admin, edgeNamed, tunnel, list, at, get }
}

const lifecycle = ({ events }: { events(): { event: string }[] }) =>
  events()
    .map(({ event }) => event)
    .filter((event) => event !== 'request')

for (const engine of engines) {
  test(`${engine}: a tunnel at two edges is one, and survives that one of them is killed`, async (t) => {
    const { edgeNamed, tunnel, list, at, get } = await startCluster(t, engine)
    const [first = ''] = await at()
    await until('totals of both', async () => ((await list())[0]?.requests ?? 0) >= 2)
    const [before] = await list()
    edgeNamed(first).child.kill('SIGKILL')
    await until('another edge', async () => {
      const edges = await at()
      return edges.length === 2 && !edges.includes(first)
    })
    for (const name of await at()) await until('served', async () => (await get(name)) === 200)
    assert.equal((await list())[0]?.id, before?.id)
    assert.deepEqual(lifecycle(tunnel), ['open'], 'the client noticed nothing')
  })

  test(`${engine}: a tunnel returns to an edge that was killed, also if there is no third one`, async (t) => {
    const { edgeNamed, tunnel, at, get } = await startCluster(t, engine, ['one', 'two'])
    for (const name of ['two', 'one']) {
      const edge = edgeNamed(name)
      edge.child.kill('SIGKILL')
      await edge.ended
      await edge.restart()
      await until('served there again', async () => (await get(name)) === 200, 60_000)
    }
    await until('two edges', async () => (await at()).length === 2)
    assert.deepEqual(lifecycle(tunnel), ['open'])
  })

  test(`${engine}: an edge that drains is replaced by another one`, async (t) => {
    const { edgeNamed, tunnel, at, get } = await startCluster(t, engine)
    const [, second = ''] = await at()
    edgeNamed(second).child.kill('SIGTERM')
    await until('another edge', async () => {
      const edges = await at()
      return edges.length === 2 && !edges.includes(second)
    })
    for (const name of await at()) await until('served', async () => (await get(name)) === 200)
    assert.deepEqual(lifecycle(tunnel), ['open'])
  })

  test(`${engine}: closing the tunnel in the dashboard closes all its connections`, async (t) => {
    const { admin, tunnel, list, at } = await startCluster(t, engine)
    const { id = '' } = (await list())[0] ?? {}
    assert.equal((await admin.remove(`/workspaces/acme/tunnels/${id}`)).status, 200)
    const { code, stderr } = await tunnel.ended
    assert.equal(code, 1)
    assert.match(stderr, /Ann closed this tunnel in the dashboard/)
    await until('closed', async () => (await at()).length === 0)
  })

  test(`${engine}: a revocation closes all connections of the tunnel`, async (t) => {
    const { server, tunnel, at } = await startCluster(t, engine)
    await revoke(server.ctx, server.key.id)
    assert.equal((await tunnel.ended).code, 4)
    await until('closed', async () => (await at()).length === 0)
  })

  test(`${engine}: peakTunnels counts the tunnel once, also when another edge takes over`, async (t) => {
    const { server, edgeNamed, tunnel, at } = await startCluster(t, engine)
    const { db } = server.services.store
    const readCounting = async () =>
      (
        await db
          .selectFrom('tunnel_names')
          .select(['counting_edge_id', 'counting_from'])
          .where('name', '=', 'app')
          .executeTakeFirstOrThrow()
      ).counting_edge_id
    const counting = await readCounting()
    const holder = (await at()).find((name) => edgeNamed(name).id === counting) ?? ''
    edgeNamed(holder).child.kill('SIGTERM')
    await until('handover', async () => (await readCounting()) !== counting)
    const minute = Math.floor(Date.now() / MINUTE_MS) * MINUTE_MS
    /** Open tunnels at all edges, by minute. */
    const readMinutes = async () => {
      const sums = new Map<number, number>()
      for (const { hour, open } of await db
        .selectFrom('usage_hours')
        .selectAll()
        .where('edge_id', '<>', '')
        .execute())
        for (const [index, peak] of decodeHour(open).entries()) {
          const at = Number(hour) + index * MINUTE_MS
          sums.set(at, (sums.get(at) ?? 0) + peak)
        }
      return sums
    }
    await until(
      'the next minute is counted',
      async () => (await readMinutes()).get(minute + MINUTE_MS) === 1,
      150_000,
    )
    assert.equal(Math.max(...(await readMinutes()).values()), 1)
    assert.deepEqual(lifecycle(tunnel), ['open'])
  })
}
