// The edge SDK rejects a key from the instant of its expiry, and reports it so that tunnels are closed.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane, startVerifier, type VerifierOptions } from '../../src/edge-sdk/index.ts'
import { createKey } from '../../src/server/domain/keys/lifecycle.ts'
import { addEdge, serve } from '../support/api/server.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { until } from '../support/until.ts'

const LIFETIME_MS = 2_000

async function setUp(t: Test, options: VerifierOptions = {}) {
  const server = await serve(t, { engine: 'sqlite' })
  const edge = await addEdge(server)
  const direct = createControlPlane({ url: server.url, credential: edge.token })
  const requested: string[] = []
  const controlPlane = {
    ...direct,
    verify(key: string) {
      requested.push(key)
      return direct.verify(key)
    },
  }
  let isConnected = false
  const onConnected = () => {
    isConnected = true
  }
  const verifier = startVerifier(controlPlane, { onConnected, ...options })
  atEnd(t, verifier.close)
  await until('revocations are received', () => isConnected)
  const expiresAt = new Date(Date.now() + LIFETIME_MS).toISOString()
  const key = await createKey(server.ctx, { expiresAt })
  return { verifier, requested, key, expiresAt: Date.parse(key.expiresAt as string) }
}

test('a cached key is rejected from its expiry on, without a request', async (t) => {
  const { verifier, requested, key, expiresAt } = await setUp(t)
  let first = await verifier.verify(key.token)
  const cached = await verifier.verify(key.token)
  assert.ok(first.valid && cached.valid)
  assert.ok(cached.expiresInMs !== undefined && first.expiresInMs !== undefined)
  assert.ok(cached.expiresInMs <= first.expiresInMs, 'the time that is left')
  assert.equal(cached.expiresAt, key.expiresAt)
  await until('it has expired', () => Date.now() >= expiresAt)
  first = await verifier.verify(key.token)
  assert.deepEqual(first, { valid: false, reason: 'expired' })
  assert.deepEqual(requested, [key.token])
})

test('an expiry is reported like a revocation', async (t) => {
  const gone: { id: string; at: number }[] = []
  const { verifier, key, expiresAt } = await setUp(t, {
    onRevoked: (id) => gone.push({ id, at: Date.now() }),
  })
  assert.equal((await verifier.verify(key.token)).valid, true)
  await until('it is reported', () => gone.length > 0, LIFETIME_MS + 3_000)
  assert.equal(gone[0]?.id, key.id)
  assert.ok((gone[0]?.at ?? 0) >= expiresAt - 1_000, 'not long before')
  assert.deepEqual(await verifier.verify(key.token), { valid: false, reason: 'expired' })
})
