// The location log: at which edges of a group each name is open.
import assert from 'node:assert/strict'
import { randomInt } from 'node:crypto'
import { test } from 'node:test'
import { createGroup } from '../../../../src/server/domain/cluster/groups.ts'
import { recordChanges } from '../../../../src/server/domain/cluster/tunnel-changes.ts'
import { readEntries } from '../../../../src/server/store/cluster/location-log.ts'
import { deleteAbandoned } from '../../../../src/server/store/tunnels/abandoned.ts'
import { addNode, operator, serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { addTunnelEdge, expireLease, type TunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'

const START = { sequence: 0, checksum: '' }

async function readLog({ services }: TestServer, group = 'default') {
  const entries = await readEntries(services.store.db, group, START, 100_000)
  assert.ok(entries, 'no entry is missing')
  return entries
}

/** Which names are open where, by the log. */
async function replay(server: TestServer): Promise<string[]> {
  const open = new Set<string>()
  for (const { opened, closed } of await readLog(server)) {
    for (const location of closed) open.delete(location.join(' '))
    for (const location of opened) open.add(location.join(' '))
  }
  return [...open].sort()
}

/** The same, by the tunnels that are stored. */
async function readOpen({ services }: TestServer): Promise<string[]> {
  const rows = await services.store.db
    .selectFrom('open_tunnels')
    .innerJoin('workspaces', 'workspaces.id', 'open_tunnels.workspace_id')
    .select(['open_tunnels.name', 'slug', 'edge_id'])
    .where((row) => row.or([row('close_reason', 'is', null), row('close_reason', '=', 'requested')]))
    .execute()
  return [...new Set(rows.map(({ name, slug, edge_id }) => `${name}.${slug} ${edge_id}`))].sort()
}

const resume = (client: number) => String(client).repeat(64)

for (const engine of engines) {
  test(`${engine}: the log of a group has the first opening and the last closing of a name at an edge`, async (t) => {
    const server = await serve(t, { engine })
    await createGroup(server.services, operator, 'eu')
    const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const last = async () => {
      const { opened, closed } = (await readLog(server)).at(-1) ?? {}
      return { opened, closed }
    }
    const pool = () => tunnelOf(server, { name: 'app', pool: true })
    const [first, second] = [pool(), { ...pool(), resume: resume(1) }]
    await a.claim(first)
    assert.deepEqual(await last(), { opened: [['app.acme', a.id]], closed: [] })
    await a.claim(second)
    await a.sync({ changed: [first, second] })
    await a.sync({ changed: [{ ...first, requests: 7 }] })
    assert.equal((await readLog(server)).length, 1, 'nothing has changed')
    await a.sync({ closed: [first.id] })
    assert.equal((await readLog(server)).length, 1, 'the second tunnel is open')
    await b.claim({ ...pool(), resume: resume(1) })
    assert.deepEqual(await last(), { opened: [['app.acme', b.id]], closed: [['app.acme', a.id]] })
    // A tunnel that was opened without the control plane.
    await a.sync({ changed: [pool()] })
    assert.deepEqual((await last()).opened, [['app.acme', a.id]])
    a.restart()
    await a.sync()
    assert.deepEqual((await last()).closed, [['app.acme', a.id]])
    await expireLease(server, b.id)
    await server.services.store.transaction(async (tx) => {
      const { closed } = await deleteAbandoned(tx, 0, 10)
      await recordChanges(tx, server.services, { opened: [], closed, moved: [] })
    })
    assert.deepEqual((await last()).closed, [['app.acme', b.id]])
    assert.deepEqual(await replay(server), [])
    assert.deepEqual(await readLog(server, 'eu'), [])
  })

  test(`${engine}: concurrent claims and syncs of several edges lose and reorder no location`, async (t) => {
    const server = await serve(t, { engine })
    const node = await addNode(t, server)
    const edges: TunnelEdge[] = []
    for (const name of ['a', 'b', 'c', 'd'])
      edges.push(await addTunnelEdge(server, name, edges.length % 2 === 0 ? server.url : node.url))
    let moves = 0

    /** Opens and closes random tunnels of two names. Its clients come from other edges, and go to them. */
    async function run(edge: TunnelEdge): Promise<void> {
      const open: string[] = []
      const claim = async () => {
        const name = `n${randomInt(2)}`
        const tunnel = tunnelOf(server, { name, pool: true, resume: resume(randomInt(4)) })
        if ((await edge.claim(tunnel)).granted) open.push(tunnel.id)
      }
      await edge.sync()
      for (let step = 0; step < 12; step++) {
        // Claims of one edge are decided at the same time, too.
        await Promise.all([claim(), claim()])
        const closing = open.splice(0, randomInt(open.length + 1))
        const { close } = await edge.sync({ closed: closing })
        moves += close.length
        await edge.sync({ closed: close.map(({ id }) => id) })
      }
    }
    await Promise.all(edges.map(run))
    assert.ok(moves > 0, 'clients have moved')
    assert.ok((await readLog(server)).length > 20)
    assert.deepEqual(await replay(server), await readOpen(server))
  })
}
