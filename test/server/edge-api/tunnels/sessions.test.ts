// Connections of one tunnel client to several edges: one tunnel in lists, quotas and events.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { MINUTE_MS } from '../../../../src/lib/time.ts'
import { createGroup } from '../../../../src/server/domain/cluster/groups.ts'
import { setUrl } from '../../../../src/server/domain/tunnels/edges.ts'
import { addMember } from '../../../support/accounts/users.ts'
import { addNode, operator, serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { readRows } from '../../../support/databases/rows.ts'
import {
  addTunnelEdge,
  expireLease,
  publicIdOf,
  storedTunnels,
  type TunnelEdge,
  tunnelOf,
} from '../../../support/edges/open-tunnels.ts'
import { addEndpoint } from '../../../support/events/webhooks.ts'
import { pluck } from '../../../support/pluck.ts'
import { commitWhenBlocked, until } from '../../../support/until.ts'

const TUNNELS = '/workspaces/acme/tunnels'
const SESSION = 'ab'.repeat(32)
const OTHER_SESSION = 'cd'.repeat(32)

let connections = 0
/** Each has its own `resume`. */
const connection = (server: TestServer, session = SESSION, given: object = {}) => {
  connections += 1
  return tunnelOf(server, { session, resume: connections.toString(16).padStart(64, '0'), ...given })
}

const addEdges = (server: TestServer, ...names: string[]) =>
  Promise.all(names.map((name) => addTunnelEdge(server, name)))

const readReason = (result: { granted: boolean; reason?: string }) => result.reason

async function readEvents({ services }: TestServer, endpointId: string) {
  const rows = await readRows(services, 'webhook_deliveries', { endpoint_id: endpointId }, 'id')
  return rows.map(({ type, body }) => [type, JSON.parse(String(body)).data.tunnel.id])
}

const addTunnelEndpoint = ({ services, workspace }: TestServer) =>
  addEndpoint(services, workspace.id, {
    url: 'https://127.0.0.1:9/',
    events: ',tunnel.opened,tunnel.closed,',
  })

const readCountingEdge = async ({ services }: TestServer) =>
  (await readRows(services, 'tunnel_names', { name: 'my-app' }))[0]?.counting_edge_id

for (const engine of engines) {
  test(`${engine}: a session at two edges is one tunnel in the list, the quota and the events`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNELS_PER_WORKSPACE: '1' } })
    const member = await addMember(server, 'Mia', 'member')
    const endpoint = await addTunnelEndpoint(server)
    const [a, b, c] = (await addEdges(server, 'a', 'b', 'c')) as [TunnelEdge, TunnelEdge, TunnelEdge]
    const first = connection(server, SESSION, { requests: 2, bytesIn: 5, streams: 1 })
    const second = connection(server, SESSION, {
      openedAt: '2026-11-15T11:00:00.000Z',
      requests: 3,
      bytesIn: 7,
    })
    assert.equal((await a.claim(first)).granted, true)
    assert.equal((await b.claim(second)).granted, true)
    assert.equal(readReason(await c.claim(connection(server, OTHER_SESSION))), 'limit_reached')
    assert.equal(
      readReason(await c.claim(connection(server, OTHER_SESSION, { name: 'other' }))),
      'limit_reached',
    )
    await a.sync({ changed: [first] })
    await b.sync({ changed: [second] })
    const id = publicIdOf(server, first)
    assert.notEqual(id, first.id)
    const { tunnels } = (await member.get(TUNNELS)).json
    assert.equal(tunnels.length, 1)
    assert.partialDeepStrictEqual(tunnels[0], {
      id,
      edges: [
        { id: a.id, name: 'a' },
        { id: b.id, name: 'b' },
      ],
      openedAt: '2026-11-15T10:02:11.000Z',
      requests: 5,
      bytesIn: 12,
      streams: 1,
    })
    await a.sync({ closed: [first.id] })
    assert.partialDeepStrictEqual((await member.get(TUNNELS)).json.tunnels, [
      { id, edges: [{ name: 'b' }], openedAt: '2026-11-15T10:02:11.000Z' },
    ])
    assert.deepEqual(await readEvents(server, endpoint), [['tunnel.opened', id]])
    const third = connection(server)
    assert.equal((await c.claim(third)).granted, true)
    await b.sync({ closed: [second.id] })
    await c.sync({ closed: [third.id] })
    assert.deepEqual((await member.get(TUNNELS)).json.tunnels, [])
    assert.deepEqual(await readEvents(server, endpoint), [
      ['tunnel.opened', id],
      ['tunnel.closed', id],
    ])
  })

  test(`${engine}: another session cannot join, and one without a pool can although others share the name`, async (t) => {
    const server = await serve(t, { engine })
    const [a, b, c] = (await addEdges(server, 'a', 'b', 'c')) as [TunnelEdge, TunnelEdge, TunnelEdge]
    assert.equal((await a.claim(connection(server))).granted, true)
    assert.equal(readReason(await b.claim(connection(server, OTHER_SESSION))), 'name_taken')
    assert.equal((await b.claim(connection(server, OTHER_SESSION, { pool: true }))).granted, true)
    assert.equal((await c.claim(connection(server))).granted, true)
    assert.equal(
      readReason(await b.claim(connection(server, SESSION, { type: 'tcp', url: 'tcp://x.example' }))),
      'name_taken',
    )
  })

  test(`${engine}: a session that an edge reports after an outage joins, too`, async (t) => {
    const server = await serve(t, { engine })
    const [a, b] = (await addEdges(server, 'a', 'b')) as [TunnelEdge, TunnelEdge]
    const [first, second] = [connection(server), connection(server)]
    await a.claim(first)
    assert.deepEqual((await b.sync({ changed: [second] })).close, [])
    assert.deepEqual(await storedTunnels(server, b.id), [second.id])
  })

  test(`${engine}: the same connection moves, and its session stays open`, async (t) => {
    const server = await serve(t, { engine })
    const endpoint = await addTunnelEndpoint(server)
    const [a, b, c] = (await addEdges(server, 'a', 'b', 'c')) as [TunnelEdge, TunnelEdge, TunnelEdge]
    const [first, second] = [connection(server), connection(server)]
    await a.claim(first)
    await b.claim(second)
    const moved = { ...first, id: connection(server).id }
    assert.equal((await c.claim(moved)).granted, true)
    const { close } = await a.sync({ changed: [first] })
    assert.deepEqual(pluck(close, 'id', 'reason'), [[first.id, 'moved']])
    assert.deepEqual((await b.sync({ changed: [second] })).close, [])
    await a.sync({ closed: [first.id] })
    assert.deepEqual(await readEvents(server, endpoint), [['tunnel.opened', publicIdOf(server, first)]])
  })

  test(`${engine}: closing a tunnel closes its connections at all edges, and the session is rejected`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const [a, b, c] = (await addEdges(server, 'a', 'b', 'c')) as [TunnelEdge, TunnelEdge, TunnelEdge]
    const [first, second] = [connection(server), connection(server)]
    await a.sync({ changed: [first] })
    await b.sync({ changed: [second] })
    const id = publicIdOf(server, first)
    for (let time = 0; time < 2; time++)
      assert.deepEqual((await admin.remove(`${TUNNELS}/${id}`)).json, { id, closing: true })
    assert.equal(readReason(await c.claim(connection(server))), 'closed')
    for (const [edge, tunnel] of [
      [a, first],
      [b, second],
    ] as const) {
      const { close } = await edge.sync()
      assert.deepEqual(pluck(close, 'id', 'reason', 'session'), [[tunnel.id, 'requested', SESSION]])
      await edge.sync({ closed: [tunnel.id] })
    }
    assert.equal((await admin.remove(`${TUNNELS}/${id}`)).status, 404)
    const entries = (await admin.get('/workspaces/acme/audit')).json.entries as { action: string }[]
    assert.equal(entries.filter(({ action }) => action === 'tunnel.closed').length, 1)
  })

  test(`${engine}: one edge counts a name, and another one from the next minute when it is gone`, async (t) => {
    const server = await serve(t, { engine })
    const [a, b] = (await addEdges(server, 'a', 'b')) as [TunnelEdge, TunnelEdge]
    const [first, second] = [connection(server), connection(server)]
    assert.partialDeepStrictEqual(await a.claim(first), { granted: true, counts: true })
    assert.partialDeepStrictEqual(await b.claim(second), { granted: true, counts: false })
    await a.sync({ changed: [first] })
    await b.sync({ changed: [second] })
    const before = Date.now()
    await a.sync({ closed: [first.id] })
    const { names } = await b.sync()
    const from = Date.parse(names[0]?.countsFrom ?? '')
    assert.equal(names[0]?.counts, true)
    assert.equal(from % MINUTE_MS, 0)
    assert.ok(from > before && from <= Date.now() + MINUTE_MS)
    assert.deepEqual((await b.sync()).names, [])
    assert.equal(await readCountingEdge(server), b.id)
    // Nobody has the name: another edge must not count it in this minute, either.
    await b.sync({ closed: [second.id] })
    assert.equal(await readCountingEdge(server), null)
    const third = await a.claim(connection(server, OTHER_SESSION))
    assert.ok(third.granted && third.counts)
    assert.ok(Date.parse(third.countsFrom ?? '') > before)
  })

  test(`${engine}: an edge counts the names of one whose lease has expired`, async (t) => {
    const server = await serve(t, { engine })
    const [a, b, c] = (await addEdges(server, 'a', 'b', 'c')) as [TunnelEdge, TunnelEdge, TunnelEdge]
    const [first, second] = [connection(server), connection(server)]
    await a.claim(first)
    await b.claim(second)
    await b.sync({ changed: [second] })
    await expireLease(server, a.id)
    assert.equal((await c.claim(connection(server))).granted, true)
    const counting = await readCountingEdge(server)
    assert.ok(counting === b.id || counting === c.id)
    await a.sync()
    assert.partialDeepStrictEqual((await a.sync({ changed: [first] })).names, [{ counts: false }])
  })

  test(`${engine}: syncs list other edges of the group as soon as they are connected`, async (t) => {
    const server = await serve(t, { engine })
    await createGroup(server.services, operator, 'eu')
    const [a, b] = (await addEdges(server, 'a', 'b')) as [TunnelEdge, TunnelEdge]
    const foreign = await addTunnelEdge(server, 'foreign', server.url, 'eu')
    const urls = new Map([a, b, foreign].map((edge) => [edge.id, `https://${edge.id.replace('_', '')}.test`]))
    for (const edge of [a, b, foreign])
      await setUrl(server.services, operator, edge.id, urls.get(edge.id) ?? '')
    await foreign.sync()
    assert.equal((await a.sync()).edges, undefined)
    await b.sync()
    // Nodes read the edges of a group every five seconds.
    await until('it is listed', async () => (await a.sync()).edges !== undefined, 20_000)
    assert.deepEqual((await a.sync()).edges, [urls.get(b.id)])
    assert.deepEqual((await b.sync()).edges, [urls.get(a.id)])
    assert.equal((await foreign.sync()).edges, undefined)
  })

  test(`${engine}: claims list other edges with a URL, other hosts and few tunnels first`, async (t) => {
    const server = await serve(t, { engine })
    const urls = ['https://x:1', 'https://x:2', 'https://y', 'https://z', 'https://idle', 'https://gone']
    const edges: TunnelEdge[] = []
    for (const [index, url] of urls.entries()) {
      const edge = await addTunnelEdge(server, `edge-${index}`)
      await setUrl(server.services, operator, edge.id, url)
      await edge.sync({ load: { tunnels: 10 - index, streams: 0 } })
      edges.push(edge)
    }
    await expireLease(server, (edges[5] as TunnelEdge).id)
    assert.partialDeepStrictEqual(await (edges[0] as TunnelEdge).claim(connection(server)), {
      edge: 'https://x:1',
      edges: ['https://idle', 'https://z', 'https://y'],
    })
  })
}

/** Waits until two transactions look which tunnels are left, or wait for what the other one has locked. */
async function untilBothClose({ db }: TestServer['services']['store']): Promise<void> {
  await until('two transactions close tunnels', async () => {
    const { rows } = await sql`select from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock'
        and (query like '%as "waiting"%' or query like '%tunnel%')`.execute(db)
    return rows.length === 2
  })
}

test('postgres: two edges that close the last connections at once record one closed event', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const node = await addNode(t, server)
  const endpoint = await addTunnelEndpoint(server)
  const a = await addTunnelEdge(server, 'a')
  const b = await addTunnelEdge(server, 'b', node.url)
  const rounds = 10
  for (let round = 0; round < rounds; round++) {
    const session = round.toString(16).padStart(64, 'e')
    const pairs = Array.from({ length: 5 }, (_, index) =>
      [a, b].map(() => connection(server, session, { name: `app-${round}-${index}` })),
    )
    const [atA, atB] = [pairs.map(([one]) => one), pairs.map(([, two]) => two)] as ReturnType<
      typeof connection
    >[][]
    await Promise.all([a.claimAll(atA ?? []), b.claimAll(atB ?? [])])
    // To give the count of a name to another edge takes a lock, too; here no edge counts.
    await sql`update tunnel_names set counting_edge_id = null`.execute(server.services.store.db)
    // Both have closed their connections, or wait for the other one, before either looks what is left.
    await commitWhenBlocked(
      server.services.store,
      (tx) => sql`lock table webhook_endpoints in access exclusive mode`.execute(tx),
      () =>
        Promise.all([
          a.sync({ closed: (atA ?? []).map(({ id }) => id) }),
          b.sync({ closed: (atB ?? []).map(({ id }) => id).reverse() }),
        ]),
      () => untilBothClose(server.services.store),
    )
  }
  const events = await readEvents(server, endpoint)
  const count = (type: string) => events.filter(([each]) => each === type)
  assert.equal(count('tunnel.opened').length, rounds * 5)
  assert.equal(new Set(count('tunnel.closed').map(([, id]) => id)).size, rounds * 5)
  assert.equal(count('tunnel.closed').length, rounds * 5)
})
