// The cluster as the edge SDK reports it: peers of the group with secrets, and where hosts are open.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { type Cluster, createControlPlane, startVerifier } from '../../src/edge-sdk/index.ts'
import { createGroup } from '../../src/server/domain/cluster/groups.ts'
import { revoke } from '../../src/server/domain/tunnels/edges.ts'
import { addNode, operator, serve, type TestServer } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { engines } from '../support/databases/create.ts'
import { addTunnelEdge, expireLease, type TunnelEdge, tunnelOf } from '../support/edges/open-tunnels.ts'
import { until } from '../support/until.ts'

interface Member extends TunnelEdge {
  cluster: Cluster
  peerAddress: string
  /** Positions with which it has opened streams. */
  resumed: (string | undefined)[]
  /** Hosts that were reported as changed. */
  changed: string[]
  /** Ends the stream; the edge reconnects. */
  disconnect(): void
}

let hosts = 1

/** An edge with a peer address, which follows its cluster at a node. */
async function join(t: Test, server: TestServer, name: string, { url = server.url, group = 'default' } = {}) {
  const edge = await addTunnelEdge(server, name, url, group)
  const peerAddress = `10.0.0.${hosts++}:8446`
  await edge.sync({ peerAddress })
  const controlPlane = createControlPlane({ url, credential: edge.token })
  const resumed: Member['resumed'] = []
  let connection = new AbortController()
  const verifier = startVerifier(
    {
      ...controlPlane,
      keyChanges(after, signal, locations) {
        resumed.push(locations)
        connection = new AbortController()
        return controlPlane.keyChanges(after, AbortSignal.any([signal, connection.signal]), locations)
      },
    },
    { cluster: true },
  )
  atEnd(t, () => verifier.close())
  const { cluster } = verifier
  assert.ok(cluster)
  const changed: string[] = []
  cluster.onLocations((list) => changed.push(...list))
  await until('it knows its id', () => cluster.edgeId === edge.id)
  return { ...edge, cluster, peerAddress, resumed, changed, disconnect: () => connection.abort() }
}

const untilFound = (member: Member, host: string, edges: readonly { id: string }[]) =>
  until(`${host} is found`, () => {
    const found = [...member.cluster.findEdges(host)].sort()
    return (
      found.join() ===
      edges
        .map(({ id }) => id)
        .sort()
        .join()
    )
  })

const untilPeers = (member: Member, peers: readonly Member[]) =>
  until('its peers are known', () => peers.every(({ id }) => member.cluster.peer(id)))

const secretsOf = (member: Member, peer: Member) =>
  member.cluster.peer(peer.id)?.secrets.map((secret) => Buffer.from(secret).toString('hex')) ?? []

for (const engine of engines) {
  test(`${engine}: edges of a group know each other and their hosts, and edges of another group nothing`, async (t) => {
    const server = await serve(t, { engine })
    const node = await addNode(t, server)
    await createGroup(server.services, operator, 'eu')
    const a = await join(t, server, 'a')
    const b = await join(t, server, 'b', { url: node.url })
    const c = await join(t, server, 'c')
    const other = await join(t, server, 'other', { group: 'eu' })
    const otherPeer = await join(t, server, 'other-peer', { group: 'eu', url: node.url })
    await Promise.all([untilPeers(a, [b, c]), untilPeers(b, [a, c]), untilPeers(other, [otherPeer])])

    assert.equal(a.cluster.peer(b.id)?.address, b.peerAddress)
    assert.deepEqual(secretsOf(a, b), secretsOf(b, a), 'both have the same secrets')
    const distinct = new Set([...secretsOf(a, b), ...secretsOf(a, c), ...secretsOf(b, c)])
    assert.equal(distinct.size, 9, 'each pair has its own, of three hours')
    assert.equal(a.cluster.peer(a.id), undefined)

    const tunnel = tunnelOf(server, { name: 'app' })
    assert.equal((await a.claim(tunnel)).granted, true)
    const host = 'app.acme.localhost'
    await Promise.all([untilFound(b, host, [a]), untilFound(c, host, [a])])
    assert.deepEqual(a.cluster.findEdges(host), [], 'it has the client itself')
    await a.sync({ changed: [tunnel] })
    await a.sync({ closed: [tunnel.id] })
    await Promise.all([untilFound(b, host, []), untilFound(c, host, [])])
    assert.deepEqual(b.changed, [host, host])

    for (const member of [other, otherPeer]) {
      assert.deepEqual(member.changed, [])
      for (const { id } of [a, b, c]) assert.equal(member.cluster.peer(id), undefined)
    }
    for (const member of [a, b, c]) assert.equal(member.cluster.peer(other.id), undefined)
  })

  test(`${engine}: an edge whose lease has ended or which is revoked is no peer`, async (t) => {
    const server = await serve(t, { engine })
    const members = []
    for (const name of ['a', 'b', 'c']) members.push(await join(t, server, name))
    const [a, b, c] = members as [Member, Member, Member]
    await untilPeers(a, [b, c])
    await b.claim(tunnelOf(server, { name: 'app' }))
    await untilFound(a, 'app.acme.localhost', [b])
    await expireLease(server, b.id)
    await until('b is gone', () => a.cluster.peer(b.id) === undefined)
    assert.deepEqual(a.cluster.findEdges('app.acme.localhost'), [])
    assert.ok(a.cluster.peer(c.id))
    b.state.previous = 0
    await b.sync({ peerAddress: '[fd00::7]:8446' })
    await until('b is back', () => a.cluster.peer(b.id)?.address === '[fd00::7]:8446')
    await revoke(server.services, operator, c.id)
    await until('c is gone', () => a.cluster.peer(c.id) === undefined)
    await b.sync()
    await until('b accepts no connections any longer', () => a.cluster.peer(b.id) === undefined)
    for (const peerAddress of [
      '10.0.0.7',
      '10.0.0.7:0',
      '10.0.0.7:65536',
      'Edge:1',
      'a b:1',
      '::1:1',
      'x/y:1',
    ])
      assert.equal((await b.post('/tunnels/sync', b.syncBody({ peerAddress }))).status, 400, peerAddress)
  })

  test(`${engine}: an edge resumes locations, and gets all of them if entries are missing`, async (t) => {
    const server = await serve(t, { engine })
    const [a, b] = [await join(t, server, 'a'), await join(t, server, 'b')]
    await untilPeers(b, [a])
    const open = (name: string) => a.claim(tunnelOf(server, { name }))
    const hostOf = (name: string) => `${name}.acme.localhost`
    await open('one')
    await untilFound(b, hostOf('one'), [a])
    const { resumed, changed } = b
    assert.deepEqual(resumed, ['none'])

    b.disconnect()
    await open('two')
    await untilFound(b, hostOf('two'), [a])
    assert.match(String(resumed.at(-1)), /^1-[0-9a-f]{16}$/)
    assert.deepEqual(changed, [hostOf('one'), hostOf('two')])

    // The log no longer reaches back to the edge's position, and a name was closed meanwhile.
    b.disconnect()
    // More than one page of a snapshot.
    for (const part of ['m', 'n'])
      await a.claimAll(
        Array.from({ length: 250 }, (_, index) => tunnelOf(server, { name: `${part}${index}` })),
      )
    await server.services.store.transaction((tx) => tx.deleteFrom('location_log').execute())
    await open('three')
    await untilFound(b, hostOf('three'), [a])
    for (const name of ['one', 'two', 'm0', 'm249', 'n0', 'n249'])
      assert.deepEqual(b.cluster.findEdges(hostOf(name)), [a.id], name)
    const count = resumed.length

    // A database that was restored has assigned the same sequence to another entry.
    b.disconnect()
    await server.services.store.transaction((tx) =>
      tx.updateTable('edge_groups').set({ location_checksum: '00' }).where('name', '=', 'default').execute(),
    )
    a.restart()
    await a.sync({ peerAddress: a.peerAddress })
    await until('all hosts are gone', () => b.cluster.findEdges(hostOf('three')).length === 0)
    await untilFound(b, hostOf('one'), [])
    assert.ok(resumed.length > count)
  })

  test(`${engine}: edges of a group know the ports of TCP tunnels, and edges of another group do not`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TCP_PORTS: '20000-20009' } })
    await createGroup(server.services, operator, 'eu')
    const [a, b] = [await join(t, server, 'a'), await join(t, server, 'b')]
    const other = await join(t, server, 'other', { group: 'eu' })
    await untilPeers(b, [a])
    const [host, httpHost] = ['db.acme.localhost', 'app.acme.localhost']
    const [tunnel, http] = [
      tunnelOf(server, { name: 'db', type: 'tcp', url: `tcp://${host}` }),
      tunnelOf(server, { name: 'app' }),
    ]
    const result = await a.claim(tunnel)
    assert.ok(result.granted)
    const { port } = result
    const { peerAddress } = a
    const open = { ...tunnel, url: `tcp://${host}:${port}` }
    await a.sync({ peerAddress, changed: [open] })
    await a.claim(http)
    await untilFound(b, httpHost, [a])
    assert.deepEqual(b.cluster.findEdges(host), [a.id])
    assert.deepEqual([b.cluster.tcpPort(host), [...b.cluster.tcpHosts()]], [port, [host]])
    assert.equal(b.cluster.tcpPort(httpHost), undefined)
    // A list of all locations has it, too.
    const late = await join(t, server, 'late')
    await untilFound(late, host, [a])
    assert.equal(late.cluster.tcpPort(host), port)
    assert.deepEqual([...other.cluster.tcpHosts()], [])

    await a.sync({ peerAddress, changed: [open, http] })
    await a.sync({ peerAddress, closed: [tunnel.id] })
    await untilFound(b, host, [])
    assert.deepEqual([...b.cluster.tcpHosts()], [])
  })
}
