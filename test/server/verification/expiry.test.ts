// From the instant of its expiry a key is rejected everywhere, without anything being written. The clock of
// the database decides.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { DAY_MS } from '../../../src/lib/time.ts'
import { readExpiry } from '../../../src/server/domain/keys/expiry.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import {
  openTestServices,
  operator,
  serve,
  serveWithEdge,
  type TestServer,
} from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'
import { until } from '../../support/until.ts'
import { startNode } from './node.ts'

/** Long enough to be cached, also on a busy machine. */
const LIFETIME_MS = 3_000

const inFuture = (ms = LIFETIME_MS) => new Date(Date.now() + ms).toISOString()

const addExpiringKey = (server: TestServer, expiresAt = inFuture()) => createKey(server.ctx, { expiresAt })

for (const engine of engines) {
  test(`${engine}: an expired key is rejected on every surface, and is listed as revoked at its expiry`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const { id, token, expiresAt } = await addExpiringKey(server)
    const call: typeof server.call = (method, path) => server.call(method, path, { key: token })
    const use = async () => [
      (await call('GET', '/workspace')).status,
      (await call('GET', '/tokens')).status,
      (await edge.verify(token)).json.valid,
    ]
    const listed = async () =>
      (await server.call('GET', '/tokens')).json.tokens.find((key: { id: string }) => key.id === id)
    assert.deepEqual(await use(), [200, 200, true])
    assert.deepEqual(await use(), [200, 200, true], 'also from the caches')
    const verified = (await edge.verify(token)).json
    assert.equal(verified.expiresAt, expiresAt)
    assert.ok(verified.expiresInMs > 0 && verified.expiresInMs <= LIFETIME_MS + 1_000)
    assert.equal((await listed()).revokedAt, null)

    await until('it has expired', () => Date.now() >= Date.parse(expiresAt as string))
    assert.deepEqual(await use(), [401, 401, false])
    const rejected = await call('GET', '/workspace')
    assert.match(rejected.json.message, /has expired/)
    assert.deepEqual((await edge.verify(token)).json, { valid: false, reason: 'expired' })
    assert.equal((await listed()).revokedAt, expiresAt)
    assert.equal((await server.call('DELETE', `/tokens/${id}`)).status, 404)
  })

  test(`${engine}: the clock of a node does not matter, also if it jumps`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
    const expiring = await createKey({ ...services, actor: operator, workspaceId }, { expiresAt: inFuture() })
    let offset = 0
    const { verifier } = await startNode(t, { ...services, clock: () => Date.now() + offset })
    const valid = async () => (await verifier.verifyKey(expiring.token)).valid
    for (const days of [0, 2, -2, 0]) {
      offset = days * DAY_MS
      assert.equal(await valid(), true, `${days} days off, before the expiry`)
    }
    await until('it has expired', () => Date.now() >= Date.parse(expiring.expiresAt as string))
    for (const days of [0, 2, -2, 0]) {
      offset = days * DAY_MS
      assert.equal(await valid(), false, `${days} days off, after the expiry`)
    }
  })
}

test('an expiry is in the future, at most ten years away, and rounded up to a second', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const now = Date.now()
  const { expiresAt } = await addExpiringKey(server, new Date(now + DAY_MS + 1).toISOString())
  assert.equal(Date.parse(expiresAt as string), Math.ceil((now + DAY_MS + 1) / 1_000) * 1_000)
  for (const [invalid, message] of [
    [new Date(now - 1).toISOString(), /must be in the future/],
    [new Date(now + 3_651 * DAY_MS).toISOString(), /must not be more than 3650 days from now/],
    [`${new Date(now).getUTCFullYear() + 1}-02-30T00:00:00Z`, /must be an existing date and time/],
  ] as const)
    await assert.rejects(addExpiringKey(server, invalid), { code: 'invalid_request', message })
})

test('the expiry of a command is a lifetime, the end of a day or a time, and exists', () => {
  const now = Date.UTC(2026, 10, 15, 12)
  assert.equal(readExpiry('90d', now), now + 90 * DAY_MS)
  assert.equal(readExpiry('12h', now), now + DAY_MS / 2)
  assert.equal(readExpiry('2028-02-29', now), Date.UTC(2028, 2, 1))
  assert.equal(readExpiry('2028-02-29T10:00:00Z', now), Date.UTC(2028, 1, 29, 10))
  for (const text of ['2027-02-29', '2027-02-30T10:00:00Z', '2027-01-31T24:00:00Z', '2027-13-01', '0d', '90'])
    assert.equal(readExpiry(text, now), undefined, text)
})
