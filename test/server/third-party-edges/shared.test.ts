// sish's authentication hook, with the requests that it sends, and what it shares with frp's plugin.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { provision } from '../../../src/server/domain/workspaces/manage.ts'
import { addEdge, addWorkspace, operator, serve } from '../../support/api/server.ts'
import { createMigratedDatabase, engines } from '../../support/databases/create.ts'
import { login, postJson } from '../../support/edges/frp-payloads.ts'
import { run, startServing } from '../../support/processes/process.ts'

for (const engine of engines)
  test(`${engine}: sish accepts a valid key, and only for its workspace`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server, 'sish-1')
    const other = await addWorkspace(server, 'other')
    const { key } = server
    const { slug } = server.workspace
    const status = async (body: unknown, credential = edge.token) =>
      (await postJson(server, `/edge/sish/${credential}`, body)).status
    const remote_addr = '203.0.113.7:52114'
    for (const user of [slug, slug.toUpperCase()])
      assert.equal(await status({ password: key.token, user, remote_addr }), 200, user)
    for (const user of ['other', 'root', `x.${slug}`, `${slug}.x`, `${slug}.`, `${slug} `, `${slug}/x`, ''])
      assert.equal(await status({ password: key.token, user, remote_addr }), 403, user)
    assert.equal(await status({ password: other.key.token, user: 'other', remote_addr }), 403)
    await provision(server.services, operator, 'other')
    assert.equal(await status({ password: other.key.token, user: 'other', remote_addr }), 200)
    for (const password of ['', 'adit_nonsense', edge.token])
      assert.equal(await status({ password, user: slug, remote_addr }), 401, password)
    assert.equal(await status({ user: slug, remote_addr }), 400)
    assert.equal(await status({ password: key.token, user: slug, remote_addr }, key.token), 401)
    await revoke(server.ctx, key.id)
    assert.equal(await status({ password: key.token, user: slug, remote_addr }), 401)
  })

test('a credential in a path is never logged, however the path continues or is encoded', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  const server = await startServing(t, env)
  const credential = (await run(t, ['admin', 'edge', 'create', 'frp-1'], env)).stdout.trim()
  const bare = credential.slice('adit_edge_'.length)
  for (const path of [
    credential,
    `${credential}/more`,
    credential.replace('_', '%5F'),
    `x${credential}`,
    `%61dit_edge%5f${bare}`,
  ])
    for (const kind of ['frp', 'sish', 'other']) {
      await postJson(server, `/edge/${kind}/${path}`, {
        version: '0.1.0',
        op: 'Login',
        content: login('adit_x'),
      })
      await postJson(server, `/edge/${kind}/${path}`, '{')
    }
  const { stderr } = await server.stop()
  assert.ok(stderr.includes('/edge/frp/:credential'))
  assert.deepEqual(
    stderr.split('\n').filter((line) => line.includes(bare.slice(0, 20))),
    [],
  )
})
