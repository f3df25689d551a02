import assert from 'node:assert/strict'
import { test } from 'node:test'
import { addWorkspace, serve } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const domain = { ADIT_TUNNEL_DOMAIN: 'tunnels.example.com' }

for (const engine of engines) {
  test(`${engine}: variant A shows exactly slug, name, provisioned and tunnelBase`, async (t) => {
    const { call } = await serve(t, { engine, env: domain })
    const { status, json } = await call('GET', '/workspace')
    assert.equal(status, 200)
    assert.deepEqual(json, {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      tunnelBase: 'acme.tunnels.example.com',
    })
  })

  test(`${engine}: variant B shows exactly slug, name, provisioned and exampleUrl`, async (t) => {
    const { call } = await serve(t, { engine, env: { ...domain, ADIT_API_VARIANT: 'B' } })
    const { status, json } = await call('GET', '/workspace')
    assert.equal(status, 200)
    assert.deepEqual(json, {
      slug: 'acme',
      name: 'Acme',
      provisioned: true,
      exampleUrl: 'my-app.acme.tunnels.example.com',
    })
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
