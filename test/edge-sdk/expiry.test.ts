// The edge SDK rejects a key from the instant of its expiry, and reports it so that tunnels are closed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane, startVerifier, type VerifierOptions } from '../../src/edge-sdk/index.ts'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'
import { counting } from './verifier.ts'

const LIFETIME_MS = 2_000

async function setUp(t: Test, options: VerifierOptions = {}) {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  const { counted, requested } = counting(createControlPlane({ url: server.url, credential: edge.token }))
  let isConnected = false
  const onConnected = () => {
    isConnected = true
  }
  const verifier = startVerifier(counted, { onConnected, ...options })
  atEnd(t, verifier.close)
  await until('revocations are received', () => isConnected)
  const expiresAt = new Date(Date.now() + LIFETIME_MS).toISOString()
  const key = await createKey(server.ctx, { expiresAt })
  return { verifier, requested, key, expiresAt: Date.parse(key.expiresAt as string) }
}

test('a cached key is rejected from its expiry on, without a request', async (t) => {
  const { verifier, requested, key, expiresAt } = await setUp(t)
  const first = await verifier.verify(key.token)
  const cached = await verifier.verify(key.token)
  assert.ok(first.valid && cached.valid)
  assert.ok(cached.expiresInMs !== undefined && first.expiresInMs !== undefined)
  assert.ok(cached.expiresInMs <= first.expiresInMs, 'the remaining time')
  assert.equal(cached.expiresAt, key.expiresAt)
  await until('it has expired', () => Date.now() >= expiresAt)
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'expired' })
  assert.deepEqual(requested, [key.token])
})

test('an expiry is reported like a revocation', async (t) => {
  const reports: { id: string; at: number }[] = []
  const { verifier, key, expiresAt } = await setUp(t, {
    onRevoked: (id) => reports.push({ id, at: Date.now() }),
  })
  assert.equal((await verifier.verify(key.token)).valid, true)
  await until('the expiry is reported', () => reports.length > 0, LIFETIME_MS + 3_000)
  assert.equal(reports[0]?.id, key.id)
  assert.ok((reports[0]?.at ?? 0) >= expiresAt - 1_000, 'not long before the expiry')
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'expired' })
})
