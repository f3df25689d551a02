// A rotated key and its successor are both accepted until the overlap ends, on every node. From then on only
// the successor is.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createControlPlane, startVerifier } from '../../../src/edge-sdk/index.ts'
import type { Overlap } from '../../../src/lib/credentials/rotation.ts'
import { DAY_MS, HOUR_MS } from '../../../src/lib/time.ts'
import type { Context } from '../../../src/server/domain/context.ts'
import { type CreatedKey, createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { rotate } from '../../../src/server/domain/keys/rotation.ts'
import { lockKeyRow, updateKey } from '../../../src/server/store/keys/rows.ts'
import { awaitPropagation, publishChange } from '../../../src/server/verification/propagation.ts'
import { addEdge, addNode, caller, serve } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { until } from '../../support/until.ts'

/** What a rotation does to the old key, with an overlap that a test can wait for. Returns the new expiry. */
async function endOverlapIn(ctx: Context, { id }: CreatedKey, ms: number): Promise<number> {
  const { change, expiresAt } = await ctx.store.transaction(async (db) => {
    const row = await lockKeyRow(db, { workspaceId: ctx.workspaceId, id })
    assert.ok(row)
    const expiresAt = Math.ceil((row.now + ms) / 1_000) * 1_000
    await updateKey(db, { workspaceId: ctx.workspaceId, id }, { expires_at: expiresAt })
    const { hash } = row
    return {
      expiresAt,
      change: await publishChange(db, ctx, { kind: 'key-expiry', subjectId: id, hash, expiresAt }),
    }
  })
  await awaitPropagation(ctx, change)
  return expiresAt
}

const setExpiry = (ctx: Context, { id }: CreatedKey, expiresAt: string) =>
  ctx.store.transaction((db) =>
    updateKey(db, { workspaceId: ctx.workspaceId, id }, { expires_at: Date.parse(expiresAt) }),
  )

for (const engine of engines) {
  test(`${engine}: a rotation creates a successor with the same label, and keeps the old key for the overlap`, async (t) => {
    const server = await serve(t, { engine })
    const { ctx } = server
    const edge = await addEdge(server)
    const old = await createKey(ctx, { label: 'ci' })
    const readStatus = async (key: string) => (await server.call('GET', '/workspace', { key })).status
    assert.equal(await readStatus(old.token), 200)
    assert.equal((await edge.verify(old.token)).json.expiresAt, undefined)

    const before = Date.now()
    const successor = await rotate(ctx, old.id, '1h')
    assert.equal(successor.label, 'ci')
    assert.equal(successor.expiresAt, null)
    const { expiresAt } = successor.predecessor
    assert.deepEqual(successor.predecessor, { id: old.id, state: 'active', expiresAt })
    const overlapMs = Date.parse(expiresAt as string) - before
    assert.ok(overlapMs >= HOUR_MS && overlapMs < HOUR_MS + 10_000, `${overlapMs} ms`)
    assert.deepEqual(await Promise.all([old.token, successor.token].map(readStatus)), [200, 200])
    assert.equal((await edge.verify(old.token)).json.expiresAt, expiresAt, 'although it was cached')
    assert.equal((await edge.verify(successor.token)).json.expiresAt, undefined)
  })

  test(`${engine}: a rotation without an overlap revokes the old key`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_KEYS_PER_WORKSPACE: '2' } })
    const { ctx } = server
    const old = await createKey(ctx)
    await assert.rejects(rotate(ctx, old.id, '1h'), { code: 'invalid_request', message: /limit/ })
    assert.equal((await server.call('GET', '/workspace', { key: old.token })).status, 200)
    const expiresAt = new Date(Math.ceil(Date.now() / 1_000) * 1_000 + DAY_MS).toISOString()
    await setExpiry(ctx, old, expiresAt)
    const successor = await rotate(ctx, old.id, 'none')
    assert.deepEqual(successor.predecessor, { id: old.id, state: 'revoked', expiresAt })
    assert.equal((await server.call('GET', '/workspace', { key: old.token })).status, 401)
    assert.equal((await server.call('GET', '/workspace', { key: successor.token })).status, 200)
    await assert.rejects(rotate(ctx, old.id, '1h'), { code: 'not_found' })
    const log = await ctx.store.db.selectFrom('audit_log').selectAll().orderBy('id').execute()
    assert.deepEqual(pluck(log.slice(-3), 'action', 'target_id'), [
      ['key.revoked', old.id],
      ['key.created', successor.id],
      ['key.rotated', old.id],
    ])
    assert.deepEqual(JSON.parse(log.at(-1)?.changes ?? ''), { successor: [null, successor.id] })
  })

  test(`${engine}: a key has one active successor, also if it is rotated twice at the same time`, async (t) => {
    const server = await serve(t, { engine })
    const { ctx } = server
    const old = await createKey(ctx)
    const rotations = await Promise.allSettled([rotate(ctx, old.id, '7d'), rotate(ctx, old.id, '7d')])
    const [first] = rotations.flatMap((each) => (each.status === 'fulfilled' ? [each.value] : []))
    const [rejected] = rotations.flatMap((each) => (each.status === 'rejected' ? [each.reason] : []))
    assert.ok(first)
    assert.equal(rejected.code, 'conflict')
    assert.match(rejected.message, new RegExp(`its successor is ${first.id}`))

    const second = await rotate(ctx, first.id, 'none')
    await assert.rejects(rotate(ctx, old.id, '1h'), { message: new RegExp(`successor is ${second.id}`) })
    await revoke(ctx, second.id)
    const third = await rotate(ctx, old.id, '7d')
    assert.equal(third.predecessor.expiresAt, first.predecessor.expiresAt, 'never later than before')
  })

  test(`${engine}: a lineage has at most 5 active keys`, async (t) => {
    const { ctx } = await serve(t, { engine })
    const lineage = [await createKey(ctx)]
    const rotateNewest = async (overlap: Overlap) =>
      lineage.push(await rotate(ctx, lineage.at(-1)?.id as string, overlap))
    while (lineage.length < 5) await rotateNewest('7d')
    await assert.rejects(rotateNewest('7d'), {
      code: 'conflict',
      message: /Revoke earlier keys of this lineage first/,
    })
    await rotateNewest('none')
    await revoke(ctx, lineage[0]?.id as string)
    await rotateNewest('7d')
    assert.equal(lineage.length, 7)
  })

  test(`${engine}: a key without an expiry has successors without one, however often it is rotated`, async (t) => {
    const { ctx } = await serve(t, { engine })
    const old = await createKey(ctx)
    for (let times = 0; times < 3; times++) {
      const successor = await rotate(ctx, old.id, '1h')
      assert.equal(successor.expiresAt, null)
      await revoke(ctx, successor.id)
    }
  })

  test(`${engine}: a successor lives as long as the old key was created for`, async (t) => {
    const server = await serve(t, { engine })
    const { ctx } = server
    const lifetimeMs = ({ createdAt, expiresAt }: CreatedKey) =>
      Date.parse(expiresAt as string) - Date.parse(createdAt)
    const old = await createKey(ctx, { expiresAt: new Date(Date.now() + 30 * DAY_MS).toISOString() })
    const successor = await rotate(ctx, old.id, '24h')
    await revoke(ctx, successor.id)
    const next = await rotate(ctx, old.id, '24h')
    for (const key of [successor, next])
      assert.ok(Math.abs(lifetimeMs(key) - 30 * DAY_MS) < 10_000, 'not as long as the overlap')

    // Expiries are rounded up to a second.
    const now = Math.floor(Date.now() / 1_000) * 1_000 + 1
    const longest = new Date(now + 3_650 * DAY_MS).toISOString()
    const oldest = await createKey({ ...ctx, clock: () => now }, { expiresAt: longest })
    assert.ok(lifetimeMs(oldest) > 3_650 * DAY_MS)
    assert.equal((await rotate({ ...ctx, clock: () => now }, oldest.id, '24h')).expiresAt, oldest.expiresAt)
  })
}

test('a rotation under load on two nodes loses no request', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const nodes = [server.url, (await addNode(t, server)).url].map((url) => caller(`${url}/api/v1`, ''))
  const { ctx } = server
  const old = await createKey(ctx, { label: 'ci' })
  const keys = [old.token]
  let stopped = false
  let requests = 0
  const rejected: number[] = []
  async function load(): Promise<void> {
    while (!stopped)
      for (const node of nodes)
        for (const key of keys) {
          const { status } = await node('GET', '/tokens', { key })
          requests += 1
          if (status !== 200) rejected.push(status)
        }
  }
  const loads = [load(), load()]
  await until('both nodes have the key in the cache', () => requests > 20)
  const successor = await rotate(ctx, old.id, '1h')
  keys.push(successor.token)
  const before = requests
  await until('both keys are used on both nodes', () => requests > before + 40)
  stopped = true
  await Promise.all(loads)
  assert.deepEqual(rejected, [])

  const expiresAt = await endOverlapIn(ctx, old, 1_500)
  const statuses = async (key: string) =>
    Promise.all(nodes.map(async (node) => (await node('GET', '/tokens', { key })).status))
  await until('the overlap has ended', () => Date.now() >= expiresAt)
  assert.deepEqual(await statuses(old.token), [401, 401])
  assert.deepEqual(await statuses(successor.token), [200, 200])
})

test('an edge that has a key in its cache learns that it expires earlier', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { ctx } = server
  const edge = await addEdge(server)
  const old = await createKey(ctx)
  const gone: string[] = []
  let isConnected = false
  const controlPlane = createControlPlane({ url: server.url, credential: edge.token })
  const verifier = startVerifier(controlPlane, {
    onConnected: () => {
      isConnected = true
    },
    onRevoked: (keyId, reason) => gone.push(`${keyId} ${reason}`),
  })
  atEnd(t, verifier.close)
  await until('changes are received', () => isConnected)
  assert.equal((await verifier.verify(old.token)).valid, true)
  await endOverlapIn(ctx, old, 1_000)
  await until('the edge is told to close its tunnels', () => gone.length > 0)
  assert.deepEqual(gone, [`${old.id} expired`])
  assert.deepEqual(await verifier.verify(old.token), { valid: false, reason: 'expired' })
})
