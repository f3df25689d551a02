// `POST /edge/v1/hosts/find`: the host names of this deployment.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { archiveAsOperator, restore } from '../../../src/server/domain/workspaces/archive.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { addMember } from '../../support/accounts/users.ts'
import { operator, serveWithEdge } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { addTunnelEdge, tunnelOf } from '../../support/edges/open-tunnels.ts'

for (const engine of engines)
  test(`${engine}: an edge finds the tunnel domains and names of workspaces, and no other hosts`, async (t) => {
    let now = Date.now()
    const env = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com' }
    const { server, edge } = await serveWithEdge(t, { engine, env, clock: () => now })
    const find = async (host: string) => {
      const { status, json } = await edge.post('/hosts/find', { host })
      return status === 200 ? json : status
    }
    assert.deepEqual(await find('tunnels.example.com'), { found: true, workspace: null })
    assert.deepEqual(await find('acme.tunnels.example.com'), { found: true, workspace: 'acme' })
    const others = ['beta', 'app.acme', 'x-', '0'].map((name) => `${name}.tunnels.example.com`)
    for (const host of [...others, 'example.com', 'acme', 'acmetunnels.example.com', 'a..b'])
      assert.deepEqual(await find(host), { found: false }, host)
    for (const host of ['', '.', 'ACME', 'acme\u0000.tunnels.example.com', 'ä', 'a'.repeat(254)])
      assert.equal(await find(host), 400, host)
    const claiming = await addTunnelEdge(server, 'claiming')
    await claiming.claim(tunnelOf(server, { name: 'used' }))
    const { post } = await addMember(server, 'Ann', 'admin')
    assert.equal((await post('/workspaces/acme/names', { name: 'reserved' })).status, 200)
    for (const name of ['used', 'reserved'])
      assert.deepEqual(await find(`${name}.acme.tunnels.example.com`), { found: true, workspace: 'acme' })
    assert.deepEqual(await find('x.used.acme.tunnels.example.com'), { found: false })
    now += 2 * 86_400_000
    assert.deepEqual(await find('used.acme.tunnels.example.com'), { found: false })
    assert.equal((await find('reserved.acme.tunnels.example.com')).found, true)
    await archiveAsOperator(server.services, operator, 'acme')
    for (const host of ['acme.tunnels.example.com', 'reserved.acme.tunnels.example.com'])
      assert.deepEqual(await find(host), { found: false }, 'archived')
    await restore(server.services, operator, 'acme')
    assert.equal((await find('reserved.acme.tunnels.example.com')).found, true)
    await createWorkspace(server.services, operator, { slug: 'beta' })
    // It needs a certificate before the first client connects with a key.
    assert.deepEqual(await find('beta.tunnels.example.com'), { found: true, workspace: 'beta' })
  })
