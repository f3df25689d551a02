import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { addMember } from '../../support/accounts/users.ts'
import { addWorkspace, rename, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows } from '../../support/databases/rows.ts'

const create = (server: TestServer, idempotencyKey: string, body: unknown = { label: 'ci' }) =>
  server.post('/tokens', body, { 'idempotency-key': idempotencyKey })

for (const engine of engines) {
  /** Each test has Idempotency-Keys of its own. */
  const server = await serve({ after }, { engine })
  const count = async () => (await server.call('GET', '/tokens')).json.tokens.length

  test(`${engine}: a retry returns the first response, byte for byte, and creates nothing`, async () => {
    const before = await count()
    const first = await create(server, 'retried')
    const again = await create(server, 'retried')
    assert.deepEqual([first.status, again.status, again.text], [201, 201, first.text])
    assert.equal(again.headers.get('cache-control'), 'no-store')
    assert.equal(await count(), before + 1)
    assert.equal((await server.call('GET', '/workspace', { key: again.json.token })).status, 200)
  })

  test(`${engine}: many concurrent retries create one key`, async () => {
    const before = await count()
    const responses = await Promise.all(Array.from({ length: 12 }, () => create(server, 'concurrent')))
    const texts = responses.map(({ text }) => text)
    assert.equal(new Set(texts).size, 1, texts.join('\n'))
    assert.equal(responses[0]?.status, 201)
    assert.equal(await count(), before + 1)
  })

  test(`${engine}: another body under the same key is 422`, async () => {
    await create(server, 'other-body', { label: 'one' })
    const before = await count()
    const { status, json } = await create(server, 'other-body', { label: 'two' })
    assert.deepEqual([status, json.error], [422, 'idempotency_mismatch'])
    assert.equal((await create(server, 'other-body', {})).status, 422)
    assert.equal(await count(), before)
  })

  test(`${engine}: another expiry under the same key is 422, and the same one returns the first key`, async () => {
    const idempotency = { idempotencyKey: 'other-expiry', apiKey: server.key.token }
    const now = Date.now()
    const createUntil = (days?: number) =>
      createKey(server.ctx, {
        label: 'ci',
        idempotency,
        expiresAt: days === undefined ? undefined : new Date(now + days * DAY_MS).toISOString(),
      })
    const first = await createUntil(1)
    assert.deepEqual(await createUntil(1), first)
    for (const days of [2, undefined])
      await assert.rejects(createUntil(days), { code: 'idempotency_mismatch' })
  })

  test(`${engine}: no body, an empty body and an empty label are the same request`, async () => {
    const first = await create(server, 'same', { label: '' })
    const bare = await server.call('POST', '/tokens', { headers: { 'idempotency-key': 'same' } })
    assert.equal(bare.text, first.text)
    assert.equal((await create(server, 'same', { label: '', other: 1 })).text, first.text)
  })

  test(`${engine}: after 24 hours an Idempotency-Key can be used again`, async (t) => {
    let now = Date.now()
    const server = await serve(t, { engine, clock: () => now })
    const first = await create(server, 'abc')
    now += 24 * 3_600_000
    assert.equal((await create(server, 'abc')).text, first.text)
    now += 1
    const later = await create(server, 'abc', { label: 'new' })
    assert.equal(later.status, 201)
    assert.notEqual(later.json.id, first.json.id)
    assert.equal((await readRows(server.services, 'idempotent_responses')).length, 1)
  })

  test(`${engine}: no other key gets the response with the same Idempotency-Key`, async () => {
    const other = await addWorkspace(server, 'other')
    const mine = await create(server, 'shared')
    const colleague = (await server.post('/tokens', { label: 'colleague' })).json
    const headers = { 'idempotency-key': 'shared' }
    for (const key of [other.key.token, colleague.token]) {
      const theirs = await server.call('POST', '/tokens', { key, json: { label: 'ci' }, headers })
      assert.equal(theirs.status, 201)
      assert.notEqual(theirs.json.token, mine.json.token)
    }
  })

  test(`${engine}: a retry returns no raw key after the policy forbids keys to create keys`, async () => {
    const olga = await addMember(server, 'Olga', 'owner')
    const first = await create(server, 'forbidden')
    const policy = (keysManageKeys: boolean) => olga.post('/workspaces/acme/policy', { keysManageKeys })
    assert.equal((await policy(false)).status, 200)
    const rejected = await create(server, 'forbidden')
    assert.equal((await policy(true)).status, 200)
    assert.equal(rejected.status, 400)
    assert.match(rejected.json.details[0].message, /policy of this workspace/)
    assert.equal((await create(server, 'forbidden')).text, first.text)
  })

  test(`${engine}: a failed creation does not consume the Idempotency-Key`, async () => {
    const before = await count()
    assert.equal((await create(server, 'failed', { label: 7 })).status, 400)
    await rename(server, 'audit_log', 'audit_log_away')
    const failed = await create(server, 'failed')
    await rename(server, 'audit_log_away', 'audit_log')
    assert.equal(failed.status, 500)
    assert.equal((await create(server, 'failed')).status, 201)
    assert.equal(await count(), before + 1)
  })
}

test('an invalid Idempotency-Key is 400; on reads the header is ignored', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  for (const value of ['', 'x'.repeat(256), 'with space', 'caf\u00e9']) {
    const { status, json } = await create(server, value)
    assert.equal(status, 400, value)
    assert.equal(json.details[0].path, '/headers/idempotency-key')
  }
  assert.equal((await create(server, 'x'.repeat(255))).status, 201)
  assert.equal(
    (await server.call('GET', '/tokens', { headers: { 'idempotency-key': 'with space' } })).status,
    200,
  )
})
