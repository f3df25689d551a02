import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addWorkspace, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

for (const engine of engines) {
  for (const [variant, field, host] of [
    ['A', 'tunnelBase', 'acme.tunnels.example.com'],
    ['B', 'exampleUrl', 'my-app.acme.tunnels.example.com'],
  ] as const)
    test(`${engine}: variant ${variant} shows exactly slug, name, provisioned and ${field}`, async (t) => {
      const env = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com', ADIT_API_VARIANT: variant }
      const { call } = await serve(t, { engine, env })
      const { status, json } = await call('GET', '/workspace')
      assert.equal(status, 200)
      assert.deepEqual(json, { slug: 'acme', name: 'Acme', provisioned: true, [field]: host })
    })

  test(`${engine}: the key alone determines the workspace`, async (t) => {
    const server = await serve(t, { engine })
    const other = await addWorkspace(server, 'other')
    const mine = await server.call('GET', '/workspace?workspace=other&slug=other')
    const theirs = await server.call('GET', '/workspace', { key: other.key.token })
    assert.equal(mine.json.slug, 'acme')
    assert.equal(theirs.json.slug, 'other')
    assert.equal(theirs.json.provisioned, false)
  })
}
