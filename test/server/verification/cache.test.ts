// The cache of a node and when it may be used. Tables are renamed to prove that a response came from the
// cache.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely, KyselyPlugin } from 'kysely'
import { createSecret, hashSecret } from '../../../src/lib/credentials/secret.ts'
import { createKey, revoke } from '../../../src/server/domain/keys/lifecycle.ts'
import { revoke as revokeEdge } from '../../../src/server/domain/tunnels/edges.ts'
import { createWorkspace, provision } from '../../../src/server/domain/workspaces/manage.ts'
import { listNodes } from '../../../src/server/store/change-log/nodes.ts'
import type { DatabaseConnection, Db } from '../../../src/server/store/engine/store.ts'
import type { Tables } from '../../../src/server/store/engine/tables.ts'
import { revokeKey } from '../../../src/server/store/keys/rows.ts'
import { awaitPropagation, publishChange } from '../../../src/server/verification/propagation.ts'
import {
  addEdge,
  addWorkspace,
  openTestServices,
  operator,
  rename,
  serve,
  serveThroughRelay,
  serveWithEdge,
} from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { type Engine, engines } from '../../support/databases/create.ts'
import { readSource } from '../../support/network/response-source.ts'
import { until } from '../../support/until.ts'
import { startNode } from './node.ts'

/** The cast is needed because the type offers only reads. */
const withPlugin = (db: Db, plugin: KyselyPlugin): Db => (db as Kysely<Tables>).withPlugin(plugin)

async function openNode(t: Test, engine: Engine) {
  const { services } = await openTestServices(t, engine)
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const ctx = { ...services, actor: operator, workspaceId }
  return { services, ctx, ...(await startNode(t, services)) }
}

for (const engine of engines) {
  test(`${engine}: each use of a revoked key is counted, also from the cache; that of an unknown one is not`, async (t) => {
    const { ctx, verifier, rejected } = await openNode(t, engine)
    const { id, token } = await createKey(ctx)
    await verifier.verifyKey(token)
    await revoke(ctx, id)
    for (let attempt = 0; attempt < 3; attempt++) await verifier.verifyKey(token)
    await verifier.verifyKey(createSecret('key', ctx.random))
    assert.deepEqual(rejected, Array(3).fill(hashSecret(token)))
  })

  test(`${engine}: cached keys, edges and workspaces are served without the database`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine })
    const before = await edge.verify(server.key.token)
    for (const table of ['api_keys', 'edges', 'workspaces']) await rename(server, table, `${table}_away`)
    const after = await edge.verify(server.key.token)
    for (const table of ['api_keys', 'edges', 'workspaces']) await rename(server, `${table}_away`, table)
    assert.deepEqual([after.status, after.json], [200, before.json])
    assert.equal(before.json.valid, true)
  })

  test(`${engine}: a change by another process is effective as soon as it is acknowledged`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addEdge(server), await addEdge(server, 'other')]
    const { ctx, key } = await addWorkspace(server, 'beta')
    assert.equal((await edge.verify(key.token)).json.workspace.provisioned, false)
    // These services are not the server's own: for the server, this is another process.
    await provision(server.services, operator, 'beta')
    assert.equal((await edge.verify(key.token)).json.workspace.provisioned, true)
    await revoke(ctx, key.id)
    assert.deepEqual((await edge.verify(key.token)).json, { valid: false, reason: 'revoked' })
    assert.equal((await other.verify(key.token)).status, 200)
    await revokeEdge(server.services, operator, other.id)
    const rejected = await other.verify(key.token)
    assert.equal(rejected.status, 401)
    assert.match(rejected.json.message, /revoked/)
  })

  test(`${engine}: a database read that overlaps a revocation is not cached`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    let release = () => {}
    let queries = 0
    /** Delays the results of queries until the test releases them. */
    const delayed: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        queries += 1
        await new Promise<void>((resolve) => {
          release = resolve
        })
        return result
      },
    }
    const store = { ...services.store, db: withPlugin(services.store.db, delayed) }
    const { verifier } = await startNode(t, { ...services, store })
    const late = verifier.verifyKey(key.token)
    await until('the query has run', () => queries === 1)
    await revoke(ctx, key.id)
    release()
    assert.equal((await late).valid, true, 'it started before the revocation')
    assert.deepEqual(await verifier.verifyKey(key.token), { valid: false, reason: 'revoked' })
    assert.equal(queries, 1, 'the second result came from the cache')
  })

  test(`${engine}: a flood of invented keys evicts no valid key, and rejections are cached`, async (t) => {
    const { server, edge } = await serveWithEdge(t, { engine, env: { ADIT_KEYS_IN_MEMORY: '20' } })
    const invented = Array.from({ length: 50 }, () => createSecret('key', server.services.random))
    await edge.verify(server.key.token)
    for (const key of invented)
      assert.deepEqual((await edge.verify(key)).json, { valid: false, reason: 'unknown' })
    await rename(server, 'api_keys', 'away')
    const valid = await edge.verify(server.key.token)
    const cached = await edge.verify(invented.at(-1) as string)
    const evicted = await edge.verify(invented[0] as string)
    await rename(server, 'away', 'api_keys')
    assert.deepEqual(
      [valid.json.valid, cached.json.reason, evicted.status],
      [true, 'unknown', 500],
      'the last one is still cached, the first one was evicted',
    )
  })

  test(`${engine}: a node whose row was deleted registers again, and one that stops gives up its lease`, async (t) => {
    const { services, follower } = await openNode(t, engine)
    const rows = () => services.store.db.selectFrom('nodes').selectAll().execute()
    await until('it is up to date', () => follower.isUpToDate())
    await services.store.transaction((db) => db.deleteFrom('nodes').execute())
    await until('it is registered', async () => (await rows()).length === 1)
    await until('it is up to date again', () => follower.isUpToDate())
    await follower.deregister()
    assert.deepEqual(await rows(), [])
    assert.equal(follower.isUpToDate(), false, 'no revocation waits for it, so its cache is unusable')
  })

  test(`${engine}: a key revoked while a node registers again is not accepted from its cache`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    const { controlConnection } = services.store
    /** What happens to query results on the node's control connection. */
    let results: 'arrive' | 'fail' | 'wait' = 'arrive'
    const intercepting: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (results === 'fail') throw new Error('connection lost')
        await until('results may arrive', () => results !== 'wait')
        return result
      },
    }
    let beforeRegistration: (() => Promise<void>) | undefined
    const transaction: DatabaseConnection['transaction'] = async (work) => {
      await beforeRegistration?.()
      return services.store.transaction(work)
    }
    const store = {
      ...services.store,
      transaction,
      controlConnection: { ...controlConnection, db: withPlugin(controlConnection.db, intercepting) },
    }
    const { follower, verifier } = await startNode(t, { ...services, store }, () => {})
    await until('it is up to date', () => follower.isUpToDate())
    await verifier.verifyKey(key.token)
    results = 'fail'
    await until('its lease has expired', () => !follower.isUpToDate())
    await services.store.transaction((db) => db.deleteFrom('nodes').execute())
    const revoked = Promise.withResolvers<void>()
    beforeRegistration = async () => {
      beforeRegistration = undefined
      // It has polled and found no row. The revocation does not wait for it, because its row is missing.
      await revoke(ctx, key.id)
      results = 'wait'
      revoked.resolve()
    }
    results = 'arrive'
    await revoked.promise
    await until('it is registered', async () => (await listNodes(services.store.db)).length > 0)
    await sleep(50)
    assert.deepEqual(await verifier.verifyKey(key.token), { valid: false, reason: 'revoked' })
    results = 'arrive'
  })

  test(`${engine}: nodes drop their cache when the database is restored to an earlier state`, async (t) => {
    const { services, ctx, follower, verifier } = await openNode(t, engine)
    const [first, second] = [await createKey(ctx), await createKey(ctx)]
    await revoke(ctx, first.id)
    assert.equal((await verifier.verifyKey(second.token)).valid, true)
    await services.store.transaction(async (db) => {
      await db.updateTable('change_log_head').set({ sequence: 0 }).execute()
      await db.deleteFrom('change_log').execute()
      await db.updateTable('api_keys').set({ revoked_at: null }).where('id', '=', first.id).execute()
      await db.deleteFrom('api_keys').where('id', '=', second.id).execute()
    })
    await until('the change log was read again', () => follower.position().sequence === 0)
    assert.equal((await verifier.verifyKey(first.token)).valid, true)
    assert.deepEqual(await verifier.verifyKey(second.token), { valid: false, reason: 'unknown' })
    await revoke(ctx, first.id)
    assert.deepEqual(await verifier.verifyKey(first.token), { valid: false, reason: 'revoked' })
  })

  test(`${engine}: a sequence that is assigned a second time is not mistaken for the first`, async (t) => {
    const { services, ctx, verifier } = await openNode(t, engine)
    const [lost, next] = [await createKey(ctx), await createKey(ctx)]
    await revoke(ctx, lost.id)
    assert.equal((await verifier.verifyKey(next.token)).valid, true)
    // As after a failover to a standby that lacked the first revocation and has made another one since.
    const position = await services.store.transaction(async (db) => {
      await db.updateTable('change_log_head').set({ sequence: 0, checksum: '' }).execute()
      await db.deleteFrom('change_log').execute()
      await db.updateTable('api_keys').set({ revoked_at: null }).where('id', '=', lost.id).execute()
      const revoked = await revokeKey(db, { workspaceId: ctx.workspaceId, id: next.id }, 1)
      return publishChange(db, services, { kind: 'key', subjectId: next.id, hash: revoked?.hash as string })
    })
    assert.equal(position.sequence, 1)
    await awaitPropagation(services, position)
    assert.deepEqual(await verifier.verifyKey(next.token), { valid: false, reason: 'revoked' })
    assert.equal((await verifier.verifyKey(lost.token)).valid, true)
  })

  test(`${engine}: a retried revocation waits like the first attempt`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    // A node that will never acknowledge anything.
    await services.store.transaction((db) =>
      db
        .insertInto('nodes')
        .values({
          id: 'node_gone',
          host: 'x',
          pid: 1,
          version: '0',
          lease_ms: 900,
          acknowledged_checksum: '',
          acknowledged_sequence: 0,
          started_at: 0,
          heartbeat_at: 0,
        })
        .execute(),
    )
    const startedAt = performance.now()
    const first = revoke(ctx, key.id).then(() => performance.now())
    const { db } = services.store
    const head = () => db.selectFrom('change_log_head').select('sequence').executeTakeFirstOrThrow()
    await until('the first is committed', async () => (await head()).sequence > 0)
    await assert.rejects(revoke(ctx, key.id), { code: 'not_found' })
    const rejectedAt = performance.now()
    assert.ok((await first) - startedAt > 2_000, 'waited for less than a lease')
    assert.ok(rejectedAt - startedAt > 2_000, 'not found before the revocation was effective')
    const thirdAt = performance.now()
    await assert.rejects(revoke(ctx, key.id), { code: 'not_found' })
    assert.ok(performance.now() - thirdAt < 1_000, 'waited again for a node that was removed')
  })
}

test('without the database a node uses its cache until the lease expires, then returns 503', async (t) => {
  const { server, relay } = await serveThroughRelay(t)
  const edge = await addEdge(server)
  // A verdict is not cached if a change arrives while it is read.
  const uncached = readSource(await server.call('GET', '/unknown'))
  await until('it is cached', async () => readSource(await edge.verify(server.key.token)) !== uncached)
  relay.cut()
  const cutAt = performance.now()
  let last = await edge.verify(server.key.token)
  assert.equal(last.status, 200)
  for (let sentAt = cutAt; last.status === 200; ) {
    // When it was sent, because a response can take long on a busy machine.
    assert.ok(sentAt - cutAt < 2_500, 'a lease is 2 s')
    await sleep(20)
    sentAt = performance.now()
    last = await edge.verify(server.key.token)
  }
  assert.deepEqual([last.status, last.json.error], [503, 'unavailable'])
  relay.mend()
  const ms = await until(
    'it has recovered',
    async () => (await edge.verify(server.key.token)).status === 200,
    2_000,
  )
  t.diagnostic(`recovered ${Math.round(ms)} ms after the database`)
})
