// The limit of active keys in a workspace, for every operation that creates one.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { serveWithOwner } from '../../support/accounts/users.ts'
import { addNode, addWorkspace, caller, databaseUrl, serve } from '../../support/api/server.ts'
import { createDatabase, engines } from '../../support/databases/create.ts'
import { run } from '../../support/processes/process.ts'

const LIMIT_REACHED =
  'The workspace has 3 active API keys, which is the limit. Revoke keys that are no longer in use; ' +
  'the operator can raise the limit with `adit admin workspace quota`'

const env = { ADIT_KEYS_PER_WORKSPACE: '3' }

for (const engine of engines) {
  test(`${engine}: at the limit a creation is 400; after a revocation it succeeds`, async (t) => {
    const server = await serve(t, { engine, env })
    const second = (await server.post('/tokens', { label: 'second' })).json
    const retry = { 'idempotency-key': 'third' }
    const third = await server.post('/tokens', { label: 'third' }, retry)
    assert.equal(third.status, 201)
    const late = { 'idempotency-key': 'fourth' }
    for (const headers of [{}, late]) {
      const { status, json } = await server.post('/tokens', { label: 'fourth' }, headers)
      assert.equal(status, 400)
      assert.deepEqual(json, { error: 'invalid_request', details: [{ path: '', message: LIMIT_REACHED }] })
    }
    // A retry creates nothing, so it returns the first response.
    assert.deepEqual((await server.post('/tokens', { label: 'third' }, retry)).json, third.json)
    assert.equal((await server.call('GET', '/tokens')).json.tokens.length, 3)
    const other = await addWorkspace(server, 'other')
    assert.equal((await server.call('POST', '/tokens', { key: other.key.token })).status, 201)

    await server.call('DELETE', `/tokens/${second.id}`)
    assert.equal((await server.post('/tokens', { label: 'fourth' }, late)).status, 201)
    assert.equal((await server.post('/tokens', {})).status, 400)
  })

  test(`${engine}: the limit applies to the dashboard and the operator too`, async (t) => {
    const { server, ann } = await serveWithOwner(t, { engine, env })
    for (const status of [201, 201, 400])
      assert.equal((await ann.post('/workspaces/acme/keys', { label: 'x' })).status, status)
    const created = await run(t, ['admin', 'key', 'create', '--workspace', 'acme'], {
      ...env,
      ADIT_DATABASE_URL: databaseUrl(server),
    })
    assert.equal(created.code, 2)
    assert.equal(created.stdout, '')
    assert.ok(created.stderr.includes(`adit: ${LIMIT_REACHED}`), created.stderr)
  })

  test(`${engine}: concurrent creations on several nodes do not exceed the limit together`, async (t) => {
    const limit = 12
    const server = await serve(t, { engine, env: { ADIT_KEYS_PER_WORKSPACE: String(limit) } })
    const second = await addNode(t, server)
    const calls = [server.url, second.url].map((url) => caller(`${url}/api/v1`, server.key.token))
    const responses = await Promise.all(
      Array.from({ length: 20 }, (_, index) => calls[index % 2]?.('POST', '/tokens')),
    )
    const created = responses.filter((response) => response?.status === 201).length
    assert.equal(created, limit - 1, 'the first key counts')
    assert.ok(responses.every((response) => response?.status === 201 || response?.status === 400))
    const { tokens } = (await server.call('GET', '/tokens')).json
    assert.equal(tokens.length, limit)
  })
}

test('a workspace that is over a lowered limit keeps its keys, and cannot create another', async (t) => {
  const database = await createDatabase(t, 'sqlite')
  const server = await serve(t, { engine: 'sqlite' })
  const { ctx } = server
  for (let index = 0; index < 3; index++) await createKey(ctx, { label: `k${index}` })
  const limits = { ...ctx.limits, quotas: { ...ctx.limits.quotas, keys: 2 } }
  await assert.rejects(createKey({ ...ctx, limits }, { label: 'more' }), {
    code: 'invalid_request',
  })
  assert.equal((await server.call('GET', '/workspace')).status, 200)
  const first = await run(t, ['admin', 'workspace', 'create', 'acme'], {
    ADIT_DATABASE_URL: database,
    ADIT_KEYS_PER_WORKSPACE: '0',
  })
  assert.match(first.stderr, /ADIT_KEYS_PER_WORKSPACE must be a whole number from 1 to 1000000/)
})
