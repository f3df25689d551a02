// Ports of TCP tunnels: one for each name of a workspace, on any node and at any edge, until it expires.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS, HOUR_MS } from '../../../../src/lib/time.ts'
import { deletePastRetention } from '../../../../src/server/domain/maintenance/retention.ts'
import type { NoticeEmail } from '../../../../src/server/domain/notices/mails.ts'
import { release as releaseName, reserve } from '../../../../src/server/domain/tunnels/names.ts'
import { listAllPorts, releasePort } from '../../../../src/server/domain/tunnels/operator-ports.ts'
import { archiveAsOperator } from '../../../../src/server/domain/workspaces/archive.ts'
import { usePorts } from '../../../../src/server/store/tunnels/tcp-ports.ts'
import { addMember } from '../../../support/accounts/users.ts'
import { scrape } from '../../../support/api/metrics.ts'
import { addNode, addWorkspace, operator, serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { createRun } from '../../../support/databases/maintenance-run.ts'
import { readRows, setRows } from '../../../support/databases/rows.ts'
import { addTunnelEdge, expireLease, type TunnelEdge, tunnelOf } from '../../../support/edges/open-tunnels.ts'
import { alertEnv, alertNode, OPERATOR } from '../../../support/events/alerts.ts'
import { pluck } from '../../../support/pluck.ts'
import { commitWhenBlocked } from '../../../support/until.ts'

async function addProvisioned(server: TestServer, slug: string) {
  const { workspace, key } = await addWorkspace(server, slug)
  await setRows(server.services, 'workspaces', { provisioned_at: 1 }, { id: workspace.id })
  return { workspace: slug, keyId: key.id }
}

const tcp = (server: TestServer, name: string, given = {}) =>
  tunnelOf(server, { type: 'tcp', name, url: `tcp://${name}.acme.localhost`, ...given })

/** The port, or the reason of a rejection. */
async function claim(edge: TunnelEdge, tunnel: ReturnType<typeof tcp>): Promise<number | string> {
  const result = await edge.claim(tunnel)
  return result.granted ? (result.port ?? 'no port') : result.reason
}

/** Opens a tunnel and closes it. */
async function use(server: TestServer, edge: TunnelEdge, name: string, given = {}) {
  const tunnel = tcp(server, name, given)
  const port = await claim(edge, tunnel)
  await edge.sync({ changed: typeof port === 'number' ? [{ ...tunnel, url: `tcp://x:${port}` }] : [] })
  await edge.sync({ closed: [tunnel.id] })
  return port
}

const listPorts = async ({ services }: TestServer) => (await Array.fromAsync(listAllPorts(services))).flat()

/** As if the ports had not been used for so long. */
const age = ({ services }: TestServer, ms: number) =>
  setRows(services, 'tcp_ports', { last_used_at: Date.now() - ms })

for (const engine of engines) {
  test(`${engine}: a name has one port, at every edge and node, and no other workspace gets it`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20003' } })
    const node = await addNode(t, server)
    const other = await addProvisioned(server, 'other')
    const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b', node.url)]
    const port = await use(server, a, 'db')
    assert.equal(typeof port, 'number')
    a.restart()
    const ports = []
    for (const name of ['a', 'b', 'c', 'd', 'e']) ports.push(await use(server, b, name, other))
    assert.deepEqual(
      [port, ...ports.slice(0, 3)].toSorted(),
      [20_000, 20_001, 20_002, 20_003],
      'every port is assigned once',
    )
    assert.deepEqual(ports.slice(3), ['no_port', 'no_port'])
    for (const edge of [b, a]) assert.equal(await use(server, edge, 'db'), port)
  })

  test(`${engine}: claims of many names at the same time on two nodes get different ports`, async (t) => {
    const server = await serve(t, {
      engine,
      env: { ADIT_TCP_PORTS: '20000-20011', ADIT_TCP_PORTS_PER_WORKSPACE: '7' },
    })
    const node = await addNode(t, server)
    const other = await addProvisioned(server, 'other')
    const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b', node.url)]
    const names = ['a', 'b', 'c', 'd', 'e', 'f', 'g', 'h', 'i', 'j']
    const claims = names.flatMap((name, index) => {
      const edge = edges[index % 2] as TunnelEdge
      // Each name twice: both claims are of one edge, which decides about its own clients.
      return [{}, {}, other, other].map((given) => claim(edge, tcp(server, name, given)))
    })
    const results = await Promise.all(claims)
    const assigned = await listPorts(server)
    assert.equal(assigned.length, 12, 'no port is left')
    const perWorkspace = Object.values(Object.groupBy(assigned, ({ workspace }) => workspace))
    for (const own of perWorkspace) assert.ok((own?.length ?? 0) <= 7, 'no workspace has more than its limit')
    const granted = results.filter((result) => typeof result === 'number')
    assert.equal(granted.length, 24, 'both claims of a name get its port')
    assert.equal(new Set(granted).size, 12)
    assert.deepEqual(
      new Set(results.filter((result) => typeof result === 'string')),
      new Set(['limit_reached', 'no_port'].filter((reason) => results.includes(reason))),
    )
  })

  test(`${engine}: many claims of one new name at the same time assign one port`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const node = await addNode(t, server)
    const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b', node.url)]
    const claims = Array.from({ length: 12 }, (_, index) =>
      claim(edges[index % 2] as TunnelEdge, tcp(server, 'db', { pool: true })),
    )
    const ports = new Set(await Promise.all(claims))
    assert.equal(ports.size, 1)
    assert.deepEqual(pluck(await listPorts(server), 'port'), [...ports])
  })

  test(`${engine}: at its limit a workspace opens the names that have ports, and others have theirs`, async (t) => {
    const env = { ADIT_TCP_PORTS: '20000-20999', ADIT_TCP_PORTS_PER_WORKSPACE: '2' }
    const server = await serve(t, { engine, env })
    const other = await addProvisioned(server, 'other')
    const edge = await addTunnelEdge(server, 'a')
    const ports = [await use(server, edge, 'one'), await use(server, edge, 'two')]
    const rejected = await edge.claim(tcp(server, 'three'))
    assert.ok(!rejected.granted)
    assert.equal(rejected.reason, 'limit_reached')
    assert.match(
      rejected.message,
      /ports for 2 TCP tunnels, which is the limit.*: one, two\. .*adit admin port/,
    )
    assert.deepEqual([await use(server, edge, 'one'), await use(server, edge, 'two')], ports)
    assert.equal(typeof (await use(server, edge, 'three', other)), 'number')
  })

  test(`${engine}: a port expires 7 days after its last use, and not while it is open or its name is reserved`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const { services, workspace } = server
    const edge = await addTunnelEdge(server, 'a')
    const member = await addMember(server, 'Ann', 'admin')
    const ctx = { ...services, workspaceId: workspace.id, actor: operator }
    await use(server, edge, 'unused')
    const reserved = await use(server, edge, 'reserved')
    assert.equal((await member.post('/workspaces/acme/names', { name: 'reserved' })).status < 300, true)
    const open = tcp(server, 'open')
    await claim(edge, open)
    const names = async () => {
      await deletePastRetention(createRun(services))
      return (await listPorts(server)).map(({ name }) => name).toSorted()
    }
    await age(server, 7 * DAY_MS)
    assert.deepEqual(await names(), ['open', 'reserved', 'unused'])
    await age(server, 7 * DAY_MS + 3 * HOUR_MS)
    // Also of an edge that is gone: its tunnel was open until now.
    await expireLease(server, edge.id)
    assert.deepEqual(await names(), ['open', 'reserved'])
    await edge.sync()
    await edge.sync({ closed: [open.id] })
    await releaseName(ctx, 'reserved')
    assert.deepEqual(await names(), ['open', 'reserved'], 'for as long after it was closed or released')
    assert.equal(await use(server, edge, 'reserved'), reserved)
    await age(server, 7 * DAY_MS + 3 * HOUR_MS)
    assert.deepEqual(await names(), [])
  })

  test(`${engine}: reserved names of an archived workspace keep their ports while it can be restored`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const { services, workspace } = server
    const edge = await addTunnelEdge(server, 'a')
    await use(server, edge, 'db')
    await reserve({ ...services, workspaceId: workspace.id, actor: operator }, 'db')
    await archiveAsOperator(services, operator, 'acme')
    const expire = async () => {
      await age(server, 8 * DAY_MS)
      await deletePastRetention(createRun(services))
      return (await listPorts(server)).length
    }
    assert.equal(await expire(), 1)
    await setRows(services, 'workspaces', { archived_at: Date.now() - 31 * DAY_MS })
    assert.equal(await expire(), 0)
  })

  test(`${engine}: a tunnel that a sync adds has the port of its name, or gets it if it is free`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20009' } })
    const other = await addProvisioned(server, 'other')
    const edge = await addTunnelEdge(server, 'a')
    const assigned = (await use(server, edge, 'db')) as number
    const free = assigned === 20_000 ? 20_001 : 20_000
    const at = (name: string, port: number, given = {}) =>
      tcp(server, name, { url: `tcp://${name}.acme.localhost:${port}`, ...given })
    const rejections = async (tunnel: ReturnType<typeof tcp>) =>
      (await edge.sync({ changed: [tunnel] })).close.map(({ reason, message }) => `${reason}: ${message}`)
    const assertRejected = async (tunnel: ReturnType<typeof tcp>, message: RegExp) => {
      const rejected = await rejections(tunnel)
      assert.equal(rejected.length, 1)
      assert.match(rejected[0] ?? '', message)
    }
    assert.deepEqual(await rejections(at('db', assigned)), [])
    await assertRejected(at('db', free), /^no_port: The port of the name "db" is \d+ now\./)
    await assertRejected(
      at('db', assigned, other),
      /^no_port: .* open at port \d+, which belongs to another name\./,
    )
    await assertRejected(at('cache', 30_000), /^no_port: .* port 30000, which is not in ADIT_TCP_PORTS\./)
    await assertRejected(tcp(server, 'cache'), /^no_port: The edge has not reported the port/)
    assert.deepEqual(await rejections(at('cache', free)), [])
    assert.deepEqual((await listPorts(server)).map(({ name, port }) => [name, port]).toSorted(), [
      ['cache', free],
      ['db', assigned],
    ])
  })

  test(`${engine}: a claim that is repeated after a sync has the port, too`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tcp(server, 'db')
    const body = edge.claimBody(tunnel)
    const first = (await edge.post('/tunnels/claim', body)).json.results[0]
    await edge.sync({ changed: [tunnel] })
    assert.deepEqual((await edge.post('/tunnels/claim', body)).json.results, [first])
    for (const url of [tunnel.url, 'tcp://db.acme.localhost:1', 'http://db.acme.localhost:81']) {
      await edge.sync({ changed: [{ ...tunnel, url }] })
      const [stored] = await readRows(server.services, 'open_tunnels')
      assert.equal(stored?.url, `tcp://db.acme.localhost:${first.port}`, 'whatever a sync reports')
    }
  })

  test(`${engine}: without a range there are no TCP tunnels, and another range leaves ports where they are`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000' } })
    const without = await addNode(t, { ...server, config: withRange(server, undefined) })
    const moved = await addNode(t, { ...server, config: withRange(server, { first: 30_000, last: 30_000 }) })
    const [a, b, c] = [
      await addTunnelEdge(server, 'a'),
      await addTunnelEdge(server, 'b', without.url),
      await addTunnelEdge(server, 'c', moved.url),
    ] as const
    assert.equal(await use(server, a, 'db'), 20_000)
    const rejected = await b.claim(tcp(server, 'db'))
    assert.ok(!rejected.granted)
    assert.deepEqual([rejected.reason, /ADIT_TCP_PORTS/.test(rejected.message)], ['tcp_disabled', true])
    assert.deepEqual([await use(server, c, 'db'), await use(server, c, 'cache')], [20_000, 30_000])
  })

  test(`${engine}: a rejected claim assigns no port`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20999' } })
    const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    assert.equal((await a.claim(tunnelOf(server, { name: 'web' }))).granted, true)
    assert.equal(await claim(b, tcp(server, 'web')), 'name_taken')
    assert.equal(await claim(b, tcp(server, 'db', { keyId: 'tok_unknown' })), 'invalid_key')
    assert.deepEqual(await listPorts(server), [])
  })

  test(`${engine}: the operator releases a port that is not in use, and the audit log has it`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000' } })
    const { services } = server
    const other = await addProvisioned(server, 'other')
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tcp(server, 'db')
    await claim(edge, tunnel)
    assert.deepEqual(await listPorts(server), [
      { port: 20_000, workspace: 'acme', name: 'db', state: 'open', expiresAt: null },
    ])
    await assert.rejects(
      releasePort(services, operator, 20_000),
      /Port 20000 is in use by an open tunnel, "db"/,
    )
    await assert.rejects(releasePort(services, operator, 20_001), /Port 20001 is not assigned/)
    await edge.sync({ closed: [tunnel.id] })
    const [{ state, expiresAt } = assert.fail()] = await listPorts(server)
    assert.equal(state, 'unused')
    assert.ok(Date.parse(expiresAt ?? '') > Date.now() + 7 * DAY_MS)
    assert.deepEqual(await releasePort(services, operator, 20_000), {
      ...{ port: 20_000, workspace: 'acme', name: 'db', released: true },
    })
    const [entry] = await readRows(services, 'audit_log', { action: 'port.released' })
    assert.deepEqual([entry?.workspace_id, entry?.target_id], [server.workspace.id, '20000'])
    assert.equal(await use(server, edge, 'db', other), 20_000)
  })

  test(`${engine}: the operator is told once when 80 % of the ports are assigned, and metrics have the use`, async (t) => {
    const server = await serve(t, {
      engine,
      env: { ...alertEnv, ADIT_TCP_PORTS: '20000-20004', ADIT_METRICS_PORT: '0' },
    })
    const edge = await addTunnelEdge(server, 'a')
    const emails: NoticeEmail[] = []
    const nodes = [alertNode(server, emails), alertNode(server, emails)] as const
    for (const name of ['a', 'b', 'c']) await use(server, edge, name)
    for (const node of nodes) await node.run()
    assert.equal(emails.length, 0)
    await use(server, edge, 'd')
    await Promise.all(nodes.map((node) => node.run()))
    for (const node of nodes) await node.run()
    assert.deepEqual(pluck(emails, 'to', 'subject'), [
      [OPERATOR, '4 of 5 ports for TCP tunnels of Adit are assigned'],
    ])
    assert.match(emails[0]?.text ?? '', /Extend ADIT_TCP_PORTS on every node.*adit admin port release/s)
    assert.deepEqual([...nodes[0].scarce, ...nodes[1].scarce], [{ assigned: 4, total: 5 }])
    const values = await scrape(server.metricsUrl ?? '')
    assert.equal(values.get('adit_tcp_ports_assigned'), 4)
    assert.equal(values.get('adit_tcp_ports_max'), 5)
  })
}

test('postgres: transactions lock the ports of several names in one order', async (t) => {
  const server = await serve(t, { engine: 'postgres', env: { ADIT_TCP_PORTS: '20000-20999' } })
  const { store } = server.services
  const edge = await addTunnelEdge(server, 'a')
  // Stored in the opposite order.
  for (const name of ['c', 'b', 'a']) await use(server, edge, name)
  const ids = ['c', 'b', 'a'].map((name) => ({ workspace_id: server.workspace.id, name }))
  let free: string[] = []
  const used = await commitWhenBlocked(
    store,
    (tx) => usePorts(tx, ids.slice(2)),
    () => store.transaction((tx) => usePorts(tx, ids)),
    async () => {
      const query = store.db.selectFrom('tcp_ports').select('name').orderBy('name')
      free = (await query.forUpdate().skipLocked().execute()).map(({ name }) => name)
    },
  )
  assert.deepEqual(free, ['b', 'c'], 'the first name is locked before the others')
  assert.equal(used.size, 3)
})

const withRange = ({ config }: TestServer, range: { first: number; last: number } | undefined) => ({
  ...config,
  limits: { ...config.limits, tcpPorts: { ...config.limits.tcpPorts, range } },
})
