// `POST /edge/v1/hosts/find`: the host names of this deployment.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createWorkspace } from '../../src/domain/workspaces.ts'
import { engines } from '../support/databases.ts'
import { addEdge, operator, serve } from '../support/server.ts'

for (const engine of engines)
  test(`${engine}: an edge finds the tunnel domains of workspaces, and no other hosts`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com' } })
    const edge = await addEdge(server)
    const find = async (host: string) => {
      const { status, json } = await edge.post('/hosts/find', JSON.stringify({ host }))
      return status === 200 ? json : status
    }
    assert.deepEqual(await find('tunnels.example.com'), { found: true, workspace: null })
    assert.deepEqual(await find('acme.tunnels.example.com'), { found: true, workspace: 'acme' })
    const others = ['beta', 'app.acme', 'x-', '0'].map((name) => `${name}.tunnels.example.com`)
    for (const host of [...others, 'example.com', 'acme', 'acmetunnels.example.com', 'a..b'])
      assert.deepEqual(await find(host), { found: false }, host)
    for (const host of ['', '.', 'ACME', 'acme\u0000.tunnels.example.com', 'ä', 'a'.repeat(254)])
      assert.equal(await find(host), 400, host)
    await createWorkspace(server.services, operator, { slug: 'beta' })
    assert.deepEqual(await find('beta.tunnels.example.com'), { found: true, workspace: 'beta' })
  })
