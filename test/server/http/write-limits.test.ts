// Limits of writes per key and per user: a single caller neither fills the disk nor delays others.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { AuditAction } from '../../../src/contract/audit-actions.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createBuckets } from '../../../src/server/http/limits/write-limits.ts'
import { addMember, serveWithOwner } from '../../support/accounts/users.ts'
import { addWorkspace, serve, type TestServer } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { readRows, setRows } from '../../support/databases/rows.ts'
import { sendUntilLimited } from './write-burst.ts'

/** The writes per hour, by default. */
const BURST = 600
/** A lower limit, for tests that are the same with any limit. */
const FEW = { burst: 60, env: { ADIT_WRITES_PER_HOUR: '60' } }

const readAudit = async ({ services }: TestServer, action: AuditAction) =>
  (await readRows(services, 'audit_log', { action }, 'id')).map(({ count, changes }) => ({
    count: count ?? 1,
    changes: JSON.parse(changes ?? '{}'),
  }))

const sum = (rows: { count: number }[]) => rows.reduce((total, { count }) => total + count, 0)

// A node limits writes in memory, whatever the engine is.
test('a key rotates 100 keys at once, and is then limited to a write every 6 seconds', async (t) => {
  const clock = { now: Date.now() }
  const server = await serve(t, { engine: 'sqlite', clock: () => clock.now })
  const rotate = async () => {
    const { status, json } = await server.post('/tokens', { label: 'ci' })
    assert.equal(status, 201)
    assert.equal((await server.call('DELETE', `/tokens/${json.id}`)).status, 200)
  }
  for (let index = 0; index < 100; index += 10) await Promise.all(Array.from({ length: 10 }, rotate))
  const other = await addWorkspace(server, 'other')
  const remove = () => server.call('DELETE', '/tokens/tok_unknown')
  const { succeeded, retryAfter } = await sendUntilLimited(remove)
  assert.deepEqual([succeeded, retryAfter], [BURST - 200, '6'])
  const { status, json } = await server.post('/tokens', {})
  assert.deepEqual(
    [status, json],
    [429, { error: 'rate_limited', message: 'Too many changes. Try again in 6 seconds.' }],
  )
  assert.equal((await server.call('GET', '/tokens')).status, 200, 'reads are not limited')
  const { token } = other.key
  assert.equal((await server.call('POST', '/tokens', { key: token })).status, 201, 'nor are other keys')
  clock.now += 6_000
  assert.equal((await server.post('/tokens', {})).status, 201)
  assert.equal((await server.post('/tokens', {})).status, 429)
  assert.equal(
    (await server.call('DELETE', `/tokens/${server.key.id}`)).status,
    200,
    'a key can always revoke itself',
  )
})

test('keys that create keys are limited together', async (t) => {
  const clock = { now: Date.now() }
  const server = await serve(t, { engine: 'sqlite', clock: () => clock.now, env: FEW.env })
  let token = server.key.token
  let created = 0
  for (;;) {
    const { succeeded } = await sendUntilLimited(async () => {
      const response = await server.call('POST', '/tokens', { key: token })
      if (response.status === 201) token = response.json.token
      return response
    })
    created += succeeded
    if (succeeded === 0) break
  }
  assert.equal(created, 3 * FEW.burst)
  const { ctx } = server
  const fresh = await createKey(ctx)
  assert.equal((await server.call('POST', '/tokens', { key: fresh.token })).status, 429)
  assert.equal(
    (await server.call('DELETE', `/tokens/${server.key.id}`, { key: fresh.token })).status,
    200,
    'revocations are limited per key only',
  )
})

for (const engine of engines) {
  test(`${engine}: a user is limited in renames of the own account, and every rename is in the audit log`, async (t) => {
    const clock = { now: Date.now() }
    const server = await serve(t, { engine, clock: () => clock.now, env: FEW.env })
    const ann = await addMember(server, 'Ann', 'member')
    const bob = await addMember(server, 'Bob', 'owner')
    let index = 0
    const { succeeded, retryAfter } = await sendUntilLimited(() =>
      ann.post('/account/name', { name: `Ann ${++index}` }),
    )
    assert.deepEqual([succeeded, retryAfter], [FEW.burst, '60'])
    assert.equal(sum(await readAudit(server, 'user.renamed')), FEW.burst)
    assert.equal((await bob.post('/account/name', { name: 'Robert' })).status, 200, 'others may write')
    assert.equal((await ann.remove('/account/sessions')).status, 200, 'ending access is not limited')
  })

  test(`${engine}: concurrent renames of the own account share an entry with the first value`, async (t) => {
    const server = await serve(t, { engine })
    const ann = await addMember(server, 'Ann', 'member')
    const names = Array.from({ length: 10 }, (_, index) => `Ann ${index}`)
    const responses = await Promise.all(names.map((name) => ann.post('/account/name', { name })))
    for (const { status } of responses) assert.equal(status, 200)
    const [entry, ...others] = await readAudit(server, 'user.renamed')
    assert.deepEqual([entry?.count, entry?.changes.name[0], others], [names.length, 'Ann', []])
  })

  test(`${engine}: renames in a row share an entry with the first and the last value, until it is exported`, async (t) => {
    const clock = { now: Date.now() }
    const { server, ann } = await serveWithOwner(t, { engine, clock: () => clock.now })
    const rename = async (...names: string[]) => {
      for (const name of names)
        assert.equal((await ann.post('/workspaces/acme/name', { name })).status, 200, name)
    }
    await rename('One', 'Two', 'Three')
    assert.deepEqual(await readAudit(server, 'workspace.renamed'), [
      { count: 3, changes: { name: ['Acme', 'Three'] } },
    ])
    await setRows(server.services, 'audit_log', { position: 1 })
    await rename('Four', 'Acme')
    clock.now += 61_000
    await rename('Five')
    assert.deepEqual(await readAudit(server, 'workspace.renamed'), [
      { count: 3, changes: { name: ['Acme', 'Three'] } },
      { count: 2, changes: { name: ['Three', 'Acme'] } },
      { count: 1, changes: { name: ['Acme', 'Five'] } },
    ])
  })
}

test('a bucket refills over time, and a clock that is set back does not lock it', () => {
  const clock = { now: 1e12 }
  const { spendTokens } = createBuckets(() => clock.now)
  const bucket = { name: 'x', burst: 3, refillMs: 1_000 }
  const spendAll = () => Array.from({ length: 4 }, () => spendTokens([bucket]))
  assert.deepEqual(spendAll(), [0, 0, 0, 1_000])
  clock.now += 400
  assert.equal(spendTokens([bucket]), 600)
  clock.now += 600
  assert.deepEqual([spendTokens([bucket]), spendTokens([bucket])], [0, 1_000])
  clock.now -= 3_600_000
  assert.equal(spendTokens([bucket]), 1_000)
  clock.now += 10_000
  assert.deepEqual(spendAll(), [0, 0, 0, 1_000])
  assert.equal(spendTokens([{ ...bucket, name: 'y' }, bucket]), 1_000)
  assert.deepEqual(
    Array.from({ length: 3 }, () => spendTokens([{ ...bucket, name: 'y' }])),
    [0, 0, 0],
    'a rejected write takes nothing from its other buckets',
  )
})
