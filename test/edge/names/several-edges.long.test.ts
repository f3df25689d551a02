// One tunnel client with connections to two of three edges: one tunnel, which survives the loss of an edge.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { MINUTE_MS } from '../../../src/lib/time.ts'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { moveCountsOfLostEdges } from '../../../src/server/domain/tunnels/counts.ts'
import { setUrl } from '../../../src/server/domain/tunnels/edges.ts'
import { decodeHour } from '../../../src/server/store/usage/hours.ts'
import { addMember } from '../../support/accounts/users.ts'
import { operator, serve, type TestServer } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { expireLease } from '../../support/edges/open-tunnels.ts'
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

/** The edge that counts the name in its reports. */
const readCounting = async ({ services }: TestServer) =>
  (
    await services.store.db
      .selectFrom('tunnel_names')
      .select('counting_edge_id')
      .where('name', '=', 'app')
      .executeTakeFirstOrThrow()
  ).counting_edge_id

/** Open tunnels at all edges, by minute. */
async function readMinutes({ services }: TestServer): Promise<Map<number, number>> {
  const hours = services.store.db.selectFrom('usage_hours').selectAll().where('edge_id', '<>', '')
  const sums = new Map<number, number>()
  for (const { hour, open } of await hours.execute())
    for (const [index, peak] of decodeHour(open).entries()) {
      const at = Number(hour) + index * MINUTE_MS
      sums.set(at, (sums.get(at) ?? 0) + peak)
    }
  return sums
}

async function untilNextMinuteIsCounted(server: TestServer): Promise<void> {
  const next = (Math.floor(Date.now() / MINUTE_MS) + 1) * MINUTE_MS
  const isCounted = async () => (await readMinutes(server)).get(next) === 1
  await until('the next minute is counted', isCounted, 150_000)
}

/** The lease of an edge that does not respond ends, and the control plane has noticed it. */
async function loseEdge(server: TestServer, { id }: { id: string }): Promise<void> {
  await expireLease(server, id)
  await moveCountsOfLostEdges({ services: server.services, proceed: async () => true })
}

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
    assert.match(stderr, /Ann closed this tunnel/)
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
    const counting = await readCounting(server)
    const holder = (await at()).find((name) => edgeNamed(name).id === counting) ?? ''
    edgeNamed(holder).child.kill('SIGTERM')
    await until('handover', async () => (await readCounting(server)) !== counting)
    await untilNextMinuteIsCounted(server)
    assert.equal(Math.max(...(await readMinutes(server)).values()), 1)
    assert.deepEqual(lifecycle(tunnel), ['open'])
  })

  test(`${engine}: edges that are cut off or killed are replaced in peakTunnels, and no minute counts twice`, async (t) => {
    const { server, edgeNamed, tunnel, at } = await startCluster(t, engine, ['one', 'two'])
    const counting = await readCounting(server)
    const edges = ['one', 'two'].map(edgeNamed)
    const cutOff = edges.find(({ id }) => id === counting) as (typeof edges)[number]
    const other = edges.find(({ id }) => id !== counting) as (typeof edges)[number]
    cutOff.relay.cut()
    await cutOff.waitFor(/The control plane has not been reached for too long/, 'stderr')
    await loseEdge(server, cutOff)
    assert.equal(await readCounting(server), other.id)
    await untilNextMinuteIsCounted(server)
    cutOff.relay.mend()
    await until('it is back', async () => (await at()).length === 2, 60_000)
    await cutOff.waitFor(/Carrying traffic again/, 'stderr')
    other.child.kill('SIGKILL')
    await other.ended
    await loseEdge(server, other)
    assert.equal(await readCounting(server), cutOff.id)
    await untilNextMinuteIsCounted(server)
    assert.equal(Math.max(...(await readMinutes(server)).values()), 1)
    assert.deepEqual(lifecycle(tunnel), ['open'])
  })
}
