// The policy of a workspace holds on every way in.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createKey } from '../../src/domain/keys.ts'
import { DAY_MS } from '../../src/time.ts'
import { engines } from '../support/databases.ts'
import { operator, serve } from '../support/server.ts'

for (const engine of engines) {
  test(`${engine}: a key without an expiry gets the longest life that the policy allows`, async (t) => {
    const server = await serve(t, { engine })
    await setColumns(server, { key_days_max: 30 })
    const created = await server.post('/tokens', { label: 'ci' })
    assert.equal(created.status, 201)
    const { expires_at, created_at } = await server.services.store.db
      .selectFrom('api_keys')
      .selectAll()
      .where('id', '=', created.json.id)
      .executeTakeFirstOrThrow()
    assert.ok(expires_at && Math.abs(expires_at - created_at - 30 * DAY_MS) < 1_000)
    const ctx = { ...server.services, workspaceId: server.workspace.id, actor: operator }
    const inDays = (days: number) => new Date(Date.now() + days * DAY_MS).toISOString()
    await assert.rejects(createKey(ctx, { expiresAt: inDays(32) }), /must not be more than 30 days from now/)
    const forced = { ...ctx, actor: { ...operator, force: true } }
    assert.equal((await createKey(forced)).expiresAt, null)
  })

  test(`${engine}: keys that may not manage keys can revoke themselves only`, async (t) => {
    const server = await serve(t, { engine })
    const { json: other } = await server.post('/tokens', { label: 'other' })
    await setColumns(server, { keys_read_only_at: Date.now() })
    const created = await server.post('/tokens', { label: 'ci' })
    assert.equal(created.status, 400)
    assert.match(created.json.details[0].message, /policy of this workspace does not let API keys create/)
    const revoked = await server.call('DELETE', `/tokens/${other.id}`)
    assert.equal(revoked.status, 400)
    assert.match(revoked.json.details[0].message, /policy of this workspace does not let API keys revoke/)
    assert.equal((await server.call('DELETE', `/tokens/${other.id}`, { key: other.token })).status, 200)
  })
}

const setColumns = (
  { services, workspace }: Awaited<ReturnType<typeof serve>>,
  columns: { key_days_max?: number; keys_read_only_at?: number },
) =>
  services.store.transaction((db) =>
    db.updateTable('workspaces').set(columns).where('id', '=', workspace.id).execute(),
  )
