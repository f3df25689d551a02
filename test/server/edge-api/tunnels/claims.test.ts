// Claims of tunnel names: one holder, also in races between edges, nodes and workspaces.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKey, revoke } from '../../../../src/server/domain/keys/lifecycle.ts'
import { revoke as revokeEdge } from '../../../../src/server/domain/tunnels/edges.ts'
import { addMember } from '../../../support/accounts/users.ts'
import { addNode, addWorkspace, operator, serve, type TestServer } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { readRows, setRows } from '../../../support/databases/rows.ts'
import {
  addTunnelEdge,
  expireLease,
  publicIdOf,
  storedTunnels,
  type TunnelEdge,
  tunnelOf,
} from '../../../support/edges/open-tunnels.ts'
import { pluck } from '../../../support/pluck.ts'

const readReason = (result: { granted: boolean; reason?: string }) => result.reason

for (const engine of engines) {
  test(`${engine}: a name has one holder, and is free once that reports it closed`, async (t) => {
    const server = await serve(t, { engine })
    const [first, second] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const tunnel = tunnelOf(server)
    assert.deepEqual(await first.claim(tunnel), { granted: true, access: null, counts: true })
    const rejected = await second.claim(tunnelOf(server))
    assert.equal(readReason(rejected), 'name_taken')
    assert.match((rejected as { message: string }).message, /"my-app" is in use at another edge/)
    assert.deepEqual(await storedTunnels(server, second.id), [])
    await first.sync({ changed: [tunnel] })
    await first.sync({ closed: [tunnel.id] })
    assert.equal((await second.claim(tunnelOf(server))).granted, true)
  })

  test(`${engine}: a repeated claim is granted again, and the edge itself decides about its own clients`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tunnelOf(server)
    for (const claimed of [tunnel, tunnel, tunnelOf(server)])
      assert.equal((await edge.claim(claimed)).granted, true)
    assert.equal((await storedTunnels(server, edge.id)).length, 2)
  })

  test(`${engine}: a pool is shared between edges if it has one type`, async (t) => {
    const server = await serve(t, { engine })
    const edges = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')] as const
    assert.equal((await edges[0].claim(tunnelOf(server))).granted, true)
    assert.equal((await edges[1].claim(tunnelOf(server, { pool: true }))).granted, true)
    const tcp = await edges[1].claim(tunnelOf(server, { pool: true, type: 'tcp', url: 'tcp://a.example:9' }))
    assert.equal(readReason(tcp), 'name_taken')
    assert.match((tcp as { message: string }).message, /open as http tunnel/)
    assert.equal(readReason(await edges[1].claim(tunnelOf(server))), 'name_taken')
  })

  test(`${engine}: two workspaces may use the same name`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    await setRows(server.services, 'workspaces', { provisioned_at: 1 }, { id: other.workspace.id })
    const [a, b] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    assert.equal((await a.claim(tunnelOf(server))).granted, true)
    const theirs = tunnelOf(server, { workspace: 'other', keyId: other.key.id })
    assert.equal((await b.claim(theirs)).granted, true)
  })

  test(`${engine}: a claim needs a provisioned workspace and one of its active keys`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const { ctx } = server
    const revoked = await createKey(ctx, { label: 'gone' })
    await revoke(ctx, revoked.id)
    const edge = await addTunnelEdge(server, 'a')
    const claimRejected = (given: object) => edge.claim(tunnelOf(server, given))
    const unprovisioned = { workspace: 'other', keyId: other.key.id }
    assert.equal(readReason(await claimRejected(unprovisioned)), 'not_provisioned')
    const unknown = await claimRejected({ workspace: 'nobody' })
    assert.equal(readReason(unknown), 'invalid_key')
    assert.deepEqual(
      await claimRejected({ workspace: 'other' }),
      unknown,
      'a foreign workspace looks unknown',
    )
    for (const keyId of [other.key.id, revoked.id, 'tok_unknown'])
      assert.deepEqual(await claimRejected({ keyId }), unknown)
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })

  test(`${engine}: many claims of one name by several edges on two nodes have one winner`, async (t) => {
    const server = await serve(t, { engine })
    const node = await addNode(t, server)
    const edges: TunnelEdge[] = []
    for (const name of ['a', 'b', 'c', 'd', 'e', 'f'])
      edges.push(await addTunnelEdge(server, name, edges.length % 2 === 0 ? server.url : node.url))
    for (let round = 0; round < 5; round++) {
      const name = `race-${round}`
      const claim = async (edge: TunnelEdge) =>
        (await edge.claim(tunnelOf(server, { name }))).granted ? [edge.id] : []
      const claims = edges.flatMap((edge) => [claim(edge), claim(edge), claim(edge)])
      const winners = new Set((await Promise.all(claims)).flat())
      assert.equal(winners.size, 1, `round ${round}: ${[...winners]}`)
      assert.deepEqual(await findHolders(server, name), [...winners])
    }
  })

  test(`${engine}: an edge whose lease has expired loses its names to the next claim, and is told so`, async (t) => {
    const server = await serve(t, { engine })
    const [away, next] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const [taken, kept] = [tunnelOf(server), tunnelOf(server, { name: 'kept' })]
    await away.sync({ changed: [taken, kept] })
    await expireLease(server, away.id)
    const response = await away.post('/tunnels/claim', away.claimBody(tunnelOf(server, { name: 'new' })))
    assert.equal(response.status, 503)
    assert.equal((await next.claim(tunnelOf(server))).granted, true)
    assert.equal((await away.sync()).resync, true)
    const { close, resync } = await away.sync({ changed: [taken, kept] })
    assert.equal(resync, false)
    assert.deepEqual(pluck(close, 'id', 'reason'), [[taken.id, 'name_taken']])
    assert.deepEqual(await storedTunnels(server, away.id), [kept.id])
    assert.equal((await away.claim(tunnelOf(server, { name: 'new' }))).granted, true)
  })

  test(`${engine}: a client that moves to another edge takes its name along`, async (t) => {
    const server = await serve(t, { engine })
    const [old, next] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const tunnel = tunnelOf(server, { resume: 'ab'.repeat(32) })
    await old.sync({ changed: [tunnel] })
    assert.equal(readReason(await next.claim(tunnelOf(server, { resume: 'cd'.repeat(32) }))), 'name_taken')
    assert.equal((await next.claim(tunnelOf(server, { resume: 'ab'.repeat(32) }))).granted, true)
    const { close } = await old.sync({ changed: [{ ...tunnel, requests: 1 }] })
    assert.deepEqual(pluck(close, 'id', 'reason'), [[tunnel.id, 'moved']])
    await old.sync({ closed: [tunnel.id] })
    assert.deepEqual(await findHolders(server, 'my-app'), [next.id])
  })

  test(`${engine}: a client whose tunnel was closed in the dashboard cannot open it again at any edge`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const [old, next] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const resume = 'ab'.repeat(32)
    const [tunnel, pooled] = [tunnelOf(server, { resume }), tunnelOf(server, { pool: true })]
    await old.sync({ changed: [tunnel, pooled] })
    assert.equal((await admin.remove(`/workspaces/acme/tunnels/${publicIdOf(server, tunnel)}`)).status, 200)
    const rejected = {
      granted: false,
      reason: 'closed',
      message: 'Adam closed this tunnel.',
    }
    const claim = (edge: TunnelEdge) => edge.claim(tunnelOf(server, { resume, pool: true }))
    for (const edge of [next, old, next]) assert.deepEqual(await claim(edge), rejected)
    await old.sync({ closed: [pooled.id] })
    assert.deepEqual(await next.claim(tunnelOf(server, { resume })), rejected)
    await expireLease(server, old.id)
    assert.deepEqual(await claim(next), rejected)
    assert.equal((await old.sync()).resync, true)
    const { close } = await old.sync({ changed: [tunnel] })
    assert.deepEqual(pluck(close, 'id', 'reason'), [[tunnel.id, 'requested']])
    await old.sync({ closed: [tunnel.id] })
    assert.equal((await next.claim(tunnelOf(server))).granted, true)
  })

  test(`${engine}: a close request reaches the edge although the client has reconnected or the edge restarted`, async (t) => {
    const server = await serve(t, { engine })
    const admin = await addMember(server, 'Adam', 'admin')
    const edge = await addTunnelEdge(server, 'a')
    const resume = 'ab'.repeat(32)
    const open = () => tunnelOf(server, { resume })
    const expected = (id: string) => ({
      id,
      reason: 'requested',
      message: 'Adam closed this tunnel.',
      session: resume,
    })
    const closeInDashboard = async (tunnel: ReturnType<typeof open>) =>
      assert.equal((await admin.remove(`/workspaces/acme/tunnels/${publicIdOf(server, tunnel)}`)).status, 200)
    const [old, next] = [open(), open()]
    await edge.sync({ changed: [old] })
    await closeInDashboard(old)
    // The client has replaced its connection, and the first response is lost.
    const body = edge.syncBody({ changed: [next], closed: [old.id] })
    for (const sequence of [body.sequence, body.sequence + 1])
      assert.deepEqual((await edge.post('/tunnels/sync', { ...body, sequence })).json.close, [
        expected(old.id),
      ])
    Object.assign(edge.state, { sequence: body.sequence + 1, previous: body.sequence + 1 })
    assert.deepEqual((await edge.sync({ closed: [old.id, next.id] })).close, [])
    assert.deepEqual(await storedTunnels(server, edge.id), [])

    const again = open()
    await edge.sync({ changed: [again] })
    await closeInDashboard(again)
    edge.restart()
    const rejected = { granted: false, reason: 'closed', message: expected('').message }
    assert.deepEqual(await edge.claim(open()), rejected)
    assert.deepEqual((await edge.sync()).close, [expected(again.id)])
    await edge.sync({ closed: [again.id] })
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })

  test(`${engine}: a sync does not decide about a tunnel whose claim is on its way`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    await other.claim(tunnelOf(server, { pool: true }))
    // Without --pool it cannot join the other one, whichever request arrives first.
    const tunnel = tunnelOf(server)
    const claim = edge.claimBody(tunnel)
    assert.deepEqual((await edge.sync({ changed: [{ ...tunnel, isClaiming: true }] })).close, [])
    assert.partialDeepStrictEqual(await edge.claim(tunnel, claim), { granted: false, reason: 'outdated' })
    assert.partialDeepStrictEqual(await edge.claim(tunnel), { granted: false, reason: 'name_taken' })
    assert.deepEqual(await findHolders(server, 'my-app'), [other.id])
  })

  test(`${engine}: a claim that arrives after the sync that closed its tunnel does not bring it back`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tunnelOf(server)
    const late = edge.claimBody(tunnel)
    await edge.sync({ closed: [tunnel.id] })
    const result = await edge.post('/tunnels/claim', late)
    assert.equal(result.json.results[0].reason, 'outdated')
    assert.deepEqual(await storedTunnels(server, edge.id), [])
  })

  test(`${engine}: a claim that arrives after a sync with its tunnel is granted`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnel = tunnelOf(server)
    const late = edge.claimBody(tunnel)
    await edge.sync({ changed: [tunnel] })
    assert.deepEqual((await edge.post('/tunnels/claim', late)).json, {
      results: [{ granted: true, access: null, counts: true }],
    })
  })

  test(`${engine}: a snapshot does not delete a tunnel that was claimed after it`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const [first, claimed] = [tunnelOf(server), tunnelOf(server, { name: 'other' })]
    const snapshot = edge.syncBody({ changed: [first] })
    await edge.claim(claimed, { sequence: snapshot.sequence + 1 })
    assert.equal((await edge.post('/tunnels/sync', snapshot)).status, 200)
    assert.deepEqual(await storedTunnels(server, edge.id), [first.id, claimed.id].sort())
  })

  test(`${engine}: claims of an older session are rejected, and a new session replaces its tunnels`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const { session } = edge.state
    await edge.claim(tunnelOf(server))
    edge.restart()
    const tunnel = tunnelOf(server, { name: 'second' })
    assert.equal((await edge.claim(tunnel)).granted, true)
    assert.deepEqual(await storedTunnels(server, edge.id), [tunnel.id])
    assert.equal(readReason(await edge.claim(tunnelOf(server), { session })), 'replaced')
  })

  test(`${engine}: an edge has at most 1,000 tunnels of a workspace`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addTunnelEdge(server, 'a')
    const tunnels = Array.from({ length: 1_000 }, (_, index) => tunnelOf(server, { name: `n${index}` }))
    assert.deepEqual((await edge.sync({ changed: tunnels })).close, [])
    assert.equal(readReason(await edge.claim(tunnelOf(server))), 'limit_reached')
    await expireLease(server, edge.id)
    await edge.sync()
    assert.deepEqual((await edge.sync({ changed: tunnels })).close, [])
  })

  test(`${engine}: the names of a revoked edge are free at once`, async (t) => {
    const server = await serve(t, { engine })
    const [gone, next] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    await gone.claim(tunnelOf(server))
    await revokeEdge(server.services, operator, gone.id)
    assert.equal((await next.claim(tunnelOf(server))).granted, true)
  })
}

async function findHolders({ services }: TestServer, name: string): Promise<string[]> {
  return [...new Set(pluck(await readRows(services, 'open_tunnels', { name }), 'edge_id'))]
}
