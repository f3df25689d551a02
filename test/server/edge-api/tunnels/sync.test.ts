// Reports of open tunnels: whatever the network does to them, the control plane converges to what is open.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import fc from 'fast-check'
import { addWorkspace, serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { recordQueries } from '../../../support/databases/recorded-queries.ts'
import { readRows } from '../../../support/databases/rows.ts'
import { addTunnelEdge, expireLease, storedTunnels, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { type Fate, SimulatedEdge } from '../../../support/edges/simulated-edge.ts'
import { addEndpoint, deliveriesOf } from '../../../support/events/webhooks.ts'
import { pluck } from '../../../support/pluck.ts'

const fate = fc.constantFrom<Fate>('delivered', 'delivered', 'repeated', 'unanswered', 'lost', 'delayed')
const action = fc.record({
  kind: fc.constantFrom(
    'open',
    'open',
    'close',
    'carry',
    'sync',
    'sync',
    'sync',
    'late',
    'restart',
    'expire',
  ),
  edge: fc.nat(1),
  which: fc.nat(1),
  fate,
})

async function readState({ services }: TestServer, edges: readonly SimulatedEdge[]) {
  const rows = await services.store.db
    .selectFrom('open_tunnels')
    .select(['edge_id', 'id', 'name', 'requests'])
    .where(
      'edge_id',
      'in',
      edges.map(({ id }) => id),
    )
    .execute()
  return rows.map((row) => `${row.edge_id} ${row.id} ${row.name} ${row.requests}`).sort()
}

/** By the events: each tunnel is opened and closed in turn, beginning with opened. */
async function openByEvents({ services }: TestServer, endpointId: string, edges: readonly SimulatedEdge[]) {
  const open = new Set<string>()
  for (const { type, body } of await deliveriesOf(services, endpointId)) {
    const { edgeId, id, name } = body.data.tunnel
    if (!edges.some((edge) => edge.id === edgeId)) continue
    const tunnel = `${edgeId} ${id} ${name}`
    assert.equal(open.has(tunnel), type === 'tunnel.closed', `${tunnel}: ${type}`)
    if (type === 'tunnel.opened') open.add(tunnel)
    else open.delete(tunnel)
  }
  return [...open].sort()
}

for (const engine of engines) {
  test(`${engine}: whatever is lost, repeated or delayed, list and events converge to what is open`, async (t) => {
    const server = await serve(t, { engine })
    const endpointId = await addEndpoint(server.services, server.workspace.id)
    let runs = 0
    const perform = async (
      edge: SimulatedEdge,
      { kind, which, fate }: { kind: string; which: number; fate: Fate },
    ) => {
      const id = [...edge.tunnels.keys()][which] ?? ''
      if (kind === 'open') await edge.open(`name-${runs}-${which}`, fate)
      else if (kind === 'close') edge.close(id)
      else if (kind === 'carry') edge.carry(id)
      else if (kind === 'sync') await edge.sync(fate)
      else if (kind === 'late') await edge.deliverDelayed()
      else if (kind === 'restart') edge.restart()
      else await expireLease(server, edge.id)
    }
    const property = fc.asyncProperty(fc.array(action, { maxLength: 40 }), async (actions) => {
      runs += 1
      const edges = [0, 1].map(
        (n) => new SimulatedEdge(`edge_${runs}_${n}`, server.services, tunnelOf(server)),
      )
      for (const each of actions) await perform(edges[each.edge] as SimulatedEdge, each)
      for (const edge of edges) {
        let rounds = 0
        while (!(await edge.sync('delivered'))) assert.ok(++rounds < 5, 'does not converge')
      }
      const open = edges.flatMap((edge) =>
        [...edge.tunnels.values()].map(
          ({ tunnel }) => `${edge.id} ${tunnel.id} ${tunnel.name} ${tunnel.requests}`,
        ),
      )
      assert.deepEqual(await readState(server, edges), open.sort())
      const names = open.map((each) => each.split(' ')[2])
      assert.equal(new Set(names).size, names.length, 'a name has two holders')
      // Everything arrives once more, the latest first.
      for (const edge of edges) for (const message of edge.sent.toReversed()) await message()
      assert.deepEqual(await readState(server, edges), open)
      const opened = open.map((each) => each.replace(/ \d+$/, ''))
      assert.deepEqual(await openByEvents(server, endpointId, edges), opened)
    })
    await fc.assert(property, { numRuns: engine === 'sqlite' ? 80 : 30 })
  })

  test(`${engine}: a sync updates what it reports, and nothing of other edges`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const [tunnel, theirs] = [tunnelOf(server), tunnelOf(server, { name: 'theirs' })]
    await edge.sync({ changed: [tunnel] })
    await other.sync({ changed: [theirs] })
    // Another edge's tunnel can be neither closed nor changed by its id; the id is not taken either.
    await edge.sync({ closed: [theirs.id] })
    await edge.sync({ changed: [{ ...theirs, name: 'mine', requests: 9 }] })
    assert.deepEqual(await storedTunnels(server, other.id), [theirs.id])
    const rows = await readRows(server.services, 'open_tunnels', { id: theirs.id }, 'name')
    assert.deepEqual(pluck(rows, 'edge_id', 'name', 'requests'), [
      [edge.id, 'mine', 9],
      [other.id, 'theirs', 0],
    ])
  })

  test(`${engine}: a tunnel that a sync adds needs the same as a claim`, async (t) => {
    const server = await serve(t, { engine })
    const { key } = await addWorkspace(server, 'other')
    const [edge, holder] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    await holder.claim(tunnelOf(server))
    const added = {
      name_taken: tunnelOf(server),
      not_provisioned: tunnelOf(server, { workspace: 'other', keyId: key.id }),
      invalid_key: tunnelOf(server, { keyId: key.id }),
    }
    const { close } = await edge.sync({ changed: Object.values(added) })
    const expected = Object.entries(added).map(([reason, { id }]) => [id, reason])
    assert.deepEqual(close.map(({ id, reason }) => [id, reason]).sort(), expected.sort())
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })

  test(`${engine}: syncs of a replaced session are ignored and say so`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const old = edge.syncBody({ changed: [tunnelOf(server)] })
    edge.restart()
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    for (const body of [old, { ...old, sequence: 99, previous: 98 }]) {
      const { json } = await edge.post('/tunnels/sync', body)
      assert.deepEqual(json, {
        resync: false,
        replaced: true,
        nextSyncInS: 5,
        close: [],
        grantRequired: [],
        names: [],
        lease: null,
      })
    }
    assert.deepEqual(await storedTunnels(server, edge.id), [tunnel.id])
  })

  test(`${engine}: a snapshot of several syncs frees no name before its last one`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const [first, second, gone] = ['first', 'second', 'gone'].map((name) => tunnelOf(server, { name }))
    assert.ok(first && second && gone)
    await edge.sync({ changed: [first, second, gone] })
    const snapshot = { first: edge.state.sequence + 1, isLast: false }
    await edge.sync({ previous: 0, changed: [{ ...first, requests: 1 }], snapshot })
    const claimed = await other.claim(tunnelOf(server, { name: 'second' }))
    assert.partialDeepStrictEqual(claimed, { granted: false, reason: 'name_taken' })
    // Opened meanwhile.
    const late = tunnelOf(server, { name: 'late' })
    await edge.claim(late)
    await edge.sync({ changed: [second], snapshot: { ...snapshot, isLast: true } })
    assert.deepEqual(await storedTunnels(server, edge.id), [first.id, second.id, late.id].sort())
    assert.equal((await other.claim(tunnelOf(server, { name: 'gone' }))).granted, true)
  })

  test(`${engine}: more tunnels than a sync may have follow in the next ones`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnels = Array.from({ length: 1_000 }, () => tunnelOf(server))
    await edge.sync({ changed: tunnels.slice(0, 600) })
    await edge.sync({ changed: tunnels.slice(600) })
    assert.equal((await storedTunnels(server, edge.id)).length, 1_000)
    const { status, json } = await edge.post('/tunnels/sync', {
      ...edge.syncBody(),
      changed: [...tunnels, tunnelOf(server)],
    })
    assert.equal(status, 400)
    assert.deepEqual(json.details, [{ path: '/body/changed', message: 'must not have more than 1000 items' }])
  })
}

test('postgres: a sync is one statement without changes, and three for ten changes or 500', async (t) => {
  const recorded = recordQueries(t)
  const server = await serve(t, { engine: 'postgres' })
  const edge = await addTunnelEdge(server, 'a')
  const tunnels = Array.from({ length: 900 }, (_, index) => tunnelOf(server, { name: `n${index}` }))
  await edge.sync({ changed: tunnels })
  const statements = async (count: number) => {
    recorded.length = 0
    await edge.sync({ changed: tunnels.slice(0, count).map((tunnel) => ({ ...tunnel, requests: count })) })
    // Not those of a database that is emptied in the background, nor the list of edges, which a node reads
    // once in five seconds.
    const isCounted = (text: string) =>
      /^(select|insert|update|delete|with)\b.*(edge_sessions|open_tunnels|tunnel_names)/is.test(text) &&
      !/ from "edges" /.test(text)
    return recorded.filter(({ text }) => isCounted(text)).length
  }
  assert.deepEqual([await statements(0), await statements(10), await statements(500)], [1, 3, 3])
})
