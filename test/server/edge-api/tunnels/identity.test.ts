// The id of a tunnel stands for one workspace, name, type and key.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { serve } from '../../../support/api/server.ts'
import { engines } from '../../../support/databases/create.ts'
import { addTunnelEdge, storedTunnels, tunnelOf } from '../../../support/edges/open-tunnels.ts'

for (const engine of engines) {
  test(`${engine}: a sync or claim cannot rewrite the workspace, name, type or key of a tunnel`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    const tunnel = tunnelOf(server)
    await edge.sync({ changed: [tunnel] })
    const evil = { ...tunnel, workspace: 'evil', name: 'login', type: 'tcp' as const, keyId: 'tok_other' }
    await edge.sync({ changed: [{ ...evil, url: 'http://login.evil.localhost:81', requests: 7 }] })
    const read = async () => {
      const rows = await server.services.store.db.selectFrom('open_tunnels').selectAll().execute()
      return rows.map((row) => [row.name, row.type, row.key_id, row.url, row.requests])
    }
    const url = 'http://my-app.acme.localhost:81'
    assert.deepEqual(await read(), [['my-app', 'http', server.key.id, url, 7]])
    const { status, json } = await edge.post(
      '/tunnels/claim',
      edge.claimBody({ ...tunnelOf(server, { name: 'pay' }), id: tunnel.id }),
    )
    assert.deepEqual([status, json.details?.[0]?.path], [400, '/body/tunnels/0/id'])
    assert.equal((await other.claim(tunnelOf(server, { name: 'pay' }))).granted, true)
    assert.equal((await read()).length, 2)
  })

  test(`${engine}: concurrent claims that repeat an id never grant one name to two edges`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addTunnelEdge(server, 'a'), await addTunnelEdge(server, 'b')]
    await edge.sync()
    const { id } = tunnelOf(server)
    const names = Array.from({ length: 8 }, (_, index) => `name-${index}`)
    const claims = await Promise.all(
      names.map((name) => edge.post('/tunnels/claim', edge.claimBody({ ...tunnelOf(server, { name }), id }))),
    )
    const granted = names.filter((_, index) => claims[index]?.json.results?.[0].granted === true)
    assert.equal(granted.length, 1)
    for (const name of names)
      assert.equal((await other.claim(tunnelOf(server, { name }))).granted, name !== granted[0], name)
    assert.deepEqual(await storedTunnels(server, edge.id), [id])
  })
}
