// How soon an edge learns that a tunnel is to be closed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addMember } from '../../support/accounts/users.ts'
import { addNode, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'
import { pluck } from '../../support/pluck.ts'
import { listen } from '../edge-api/change-stream.ts'

const TUNNELS = '/workspaces/acme/tunnels'

for (const engine of engines) {
  test(`${engine}: closing reaches the edge within a second on any node, and is audited`, async (t) => {
    const server = await serve(t, { engine })
    const node = await addNode(t, server)
    const admin = await addMember(server, 'Adam', 'admin')
    const edge = await addTunnelEdge(server, 'fra-1', node.url)
    const other = await addTunnelEdge(server, 'ams-1', node.url)
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    const stream = await listen(t, node.url, edge.token)
    const others = await listen(t, node.url, other.token)
    const startedAt = performance.now()
    const closed = await admin.remove(`${TUNNELS}/${tunnel.id}`)
    assert.deepEqual([closed.status, closed.json], [200, { id: tunnel.id, closing: true }])
    await stream.until((list) => list.some(({ event }) => event === 'tunnels-changed'))
    assert.ok(performance.now() - startedAt < 1_000)
    assert.ok(others.received.every(({ event }) => event === undefined))
    const expected = [{ id: tunnel.id, reason: 'requested', message: 'Adam closed this tunnel.' }]
    assert.deepEqual((await edge.sync()).close, expected)
    // Until the edge reports it closed, and only once in the audit log.
    assert.deepEqual((await edge.sync({ changed: [{ ...tunnel, requests: 1 }] })).close, expected)
    assert.equal((await admin.remove(`${TUNNELS}/${tunnel.id}`)).status, 200)
    const [listed] = (await admin.get(TUNNELS)).json.tunnels
    assert.notEqual(listed.closeRequestedAt, null)
    assert.deepEqual((await edge.sync({ closed: [tunnel.id] })).close, [])
    assert.deepEqual((await admin.get(TUNNELS)).json.tunnels, [])
    assert.equal((await admin.remove(`${TUNNELS}/${tunnel.id}`)).status, 404)
    const { entries } = (await admin.get('/workspaces/acme/audit')).json
    const closings = entries.filter((entry: { action: string }) => entry.action === 'tunnel.closed')
    assert.deepEqual(pluck(closings, 'target'), [{ kind: 'tunnel', id: tunnel.id, name: 'my-app' }])
  })
}
