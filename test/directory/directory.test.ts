// What a node remembers, and when it goes by it. Tables are taken away to see that it does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import type { Kysely, KyselyPlugin } from 'kysely'
import { createSecret } from '../../src/credentials/secret.ts'
import { startChangeFollower } from '../../src/directory/change-follower.ts'
import { createDirectory } from '../../src/directory/directory.ts'
import { startLastUsedTracker } from '../../src/directory/last-used.ts'
import type { Services } from '../../src/domain/context.ts'
import { revoke as revokeEdge } from '../../src/domain/edges.ts'
import { createKey, revoke } from '../../src/domain/keys.ts'
import { awaitPropagation, publishChange } from '../../src/domain/propagation.ts'
import { createWorkspace, provision } from '../../src/domain/workspaces.ts'
import { revokeKey } from '../../src/store/keys.ts'
import { listNodes } from '../../src/store/nodes.ts'
import type { Connection, Db, Store } from '../../src/store/store.ts'
import type { Tables } from '../../src/store/tables.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createDatabase, type Engine, engines } from '../support/databases.ts'
import { startRelay } from '../support/relay.ts'
import { addEdge, addWorkspace, openTestWorld, operator, rename, serve } from '../support/server.ts'
import { until } from '../support/until.ts'

/** A directory of its own on the database of the services: another node, without a server around it. */
/** The type offers reads alone. */
const withPlugin = (db: Db, plugin: KyselyPlugin): Db => (db as Kysely<Tables>).withPlugin(plugin)

async function startNode(
  t: Test,
  services: Services,
  store: Store = services.store,
  lost = (error: unknown): void => assert.fail(String(error)),
) {
  const node = { id: services.ids('node'), host: 'here', pid: process.pid, version: '0' }
  const feed = await startChangeFollower(store, services.clock, node, { lost, regained() {} })
  atEnd(t, () => feed.deregister())
  const uses = startLastUsedTracker(store, services.clock, () => {})
  atEnd(t, () => uses.stop())
  return { feed, directory: createDirectory({ store, feed, uses, keysMax: 100 }) }
}

async function openNode(t: Test, engine: Engine) {
  const { services } = await openTestWorld(t, engine)
  atEnd(t, () => services.store.close())
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const ctx = { ...services, actor: operator, workspaceId }
  return { services, ctx, ...(await startNode(t, services)) }
}

for (const engine of engines) {
  test(`${engine}: a key, its edge and its workspace that are known are answered from memory`, async (t) => {
    const server = await serve(t, { engine })
    const edge = await addEdge(server)
    const before = await edge.verify(server.key.token)
    for (const table of ['api_keys', 'edges', 'workspaces']) await rename(server, table, `${table}_away`)
    const after = await edge.verify(server.key.token)
    for (const table of ['api_keys', 'edges', 'workspaces']) await rename(server, `${table}_away`, table)
    assert.deepEqual([after.status, after.json], [200, before.json])
    assert.equal(before.json.valid, true)
  })

  test(`${engine}: what is revoked or changed by another process is known as soon as that says so`, async (t) => {
    const server = await serve(t, { engine })
    const [edge, other] = [await addEdge(server), await addEdge(server, 'other')]
    const { workspace, key } = await addWorkspace(server, 'beta')
    assert.equal((await edge.verify(key.token)).json.workspace.provisioned, false)
    // The services of the tests is not the server's own: to it, this is another process.
    await provision(server.services, operator, 'beta')
    assert.equal((await edge.verify(key.token)).json.workspace.provisioned, true)
    await revoke({ ...server.services, actor: operator, workspaceId: workspace.id }, key.id)
    assert.deepEqual((await edge.verify(key.token)).json, { valid: false, reason: 'revoked' })
    assert.equal((await other.verify(key.token)).status, 200)
    await revokeEdge(server.services, operator, other.id)
    assert.equal((await other.verify(key.token)).status, 401)
  })

  test(`${engine}: an answer that was on its way while the key was revoked does not bring it back`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    let letThrough = () => {}
    let asked = 0
    /** The database has answered; the answer arrives when the test says so. */
    const held: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        asked += 1
        await new Promise<void>((resolve) => {
          letThrough = resolve
        })
        return result
      },
    }
    const { directory } = await startNode(t, services, {
      ...services.store,
      db: withPlugin(services.store.db, held),
    })
    const late = directory.verifyKey(key.token)
    await until('the database has answered', () => asked === 1)
    await revoke(ctx, key.id)
    letThrough()
    assert.equal((await late).valid, true, 'it began before the revocation')
    assert.deepEqual(await directory.verifyKey(key.token), { valid: false, reason: 'revoked' })
    assert.equal(asked, 1, 'and the second answer came from memory')
  })

  test(`${engine}: a flood of invented keys drives no good one out, and each is asked for once`, async (t) => {
    const server = await serve(t, { engine, env: { ADIT_KEYS_IN_MEMORY: '20' } })
    const edge = await addEdge(server)
    const invented = Array.from({ length: 50 }, () => createSecret('key', server.services.random))
    await edge.verify(server.key.token)
    for (const key of invented)
      assert.deepEqual((await edge.verify(key)).json, { valid: false, reason: 'unknown' })
    await rename(server, 'api_keys', 'away')
    const good = await edge.verify(server.key.token)
    const known = await edge.verify(invented.at(-1) as string)
    const forgotten = await edge.verify(invented[0] as string)
    await rename(server, 'away', 'api_keys')
    assert.deepEqual(
      [good.json.valid, known.json.reason, forgotten.status],
      [true, 'unknown', 500],
      'the last one is still remembered, the first one is not',
    )
  })

  test(`${engine}: a node whose row was taken away trusts its memory only after it has put it back`, async (t) => {
    const { services, feed } = await openNode(t, engine)
    const rows = () => services.store.db.selectFrom('nodes').selectAll().execute()
    await until('it is trusted', () => feed.isTrusted())
    await services.store.transaction((db) => db.deleteFrom('nodes').execute())
    await until('it is back', async () => (await rows()).length === 1)
    await until('it is trusted again', () => feed.isTrusted())
    await feed.deregister()
    assert.deepEqual(await rows(), [], 'a node that leaves hands its lease back')
  })

  test(`${engine}: what is revoked while a node puts its row back is not accepted from memory`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    const { controlConnection: line } = services.store
    /** What becomes of the answers that the node gets on its line. */
    let fate: 'arrive' | 'fail' | 'wait' = 'arrive'
    const fateful: KyselyPlugin = {
      transformQuery: ({ node }) => node,
      async transformResult({ result }) {
        if (fate === 'fail') throw new Error('the line is down')
        await until('it may arrive', () => fate !== 'wait', 10_000)
        return result
      },
    }
    let beforeJoining: (() => Promise<void>) | undefined
    const joining: Connection['transaction'] = async (work) => {
      await beforeJoining?.()
      return line.transaction(work)
    }
    const store = {
      ...services.store,
      controlConnection: { db: withPlugin(line.db, fateful), transaction: joining },
    }
    const { feed, directory } = await startNode(t, services, store, () => {})
    await until('it is trusted', () => feed.isTrusted())
    await directory.verifyKey(key.token)
    fate = 'fail'
    await until('its lease is over', () => !feed.isTrusted())
    await services.store.transaction((db) => db.deleteFrom('nodes').execute())
    const revoked = Promise.withResolvers<void>()
    beforeJoining = async () => {
      beforeJoining = undefined
      // It has looked and not found it; nobody waits for it, because its row is not there.
      await revoke(ctx, key.id)
      fate = 'wait'
      revoked.resolve()
    }
    fate = 'arrive'
    await revoked.promise
    await until('it is back', async () => (await listNodes(services.store.db)).length > 0)
    await sleep(50)
    assert.deepEqual(await directory.verifyKey(key.token), { valid: false, reason: 'revoked' })
    fate = 'arrive'
  })

  test(`${engine}: a database that was put back to an earlier state makes nodes forget`, async (t) => {
    const { services, ctx, feed, directory } = await openNode(t, engine)
    const [first, second] = [await createKey(ctx), await createKey(ctx)]
    await revoke(ctx, first.id)
    assert.equal((await directory.verifyKey(second.token)).valid, true)
    await services.store.transaction(async (db) => {
      await db.updateTable('key_feed_head').set({ number: 0 }).execute()
      await db.deleteFrom('key_feed').execute()
      await db.updateTable('api_keys').set({ revoked_at: null }).where('id', '=', first.id).execute()
      await db.deleteFrom('api_keys').where('id', '=', second.id).execute()
    })
    await until('the feed was read again', () => feed.place().number === 0)
    assert.equal((await directory.verifyKey(first.token)).valid, true)
    assert.deepEqual(await directory.verifyKey(second.token), { valid: false, reason: 'unknown' })
    await revoke(ctx, first.id)
    assert.deepEqual(await directory.verifyKey(first.token), { valid: false, reason: 'revoked' })
  })

  test(`${engine}: a number that is given a second time is not taken for the first`, async (t) => {
    const { services, ctx, directory } = await openNode(t, engine)
    const [lost, next] = [await createKey(ctx), await createKey(ctx)]
    await revoke(ctx, lost.id)
    assert.equal((await directory.verifyKey(next.token)).valid, true)
    // As after a failover to a machine that had not heard of the first revocation: it has made another one since.
    const place = await services.store.transaction(async (db) => {
      await db.updateTable('key_feed_head').set({ number: 0, mark: '' }).execute()
      await db.deleteFrom('key_feed').execute()
      await db.updateTable('api_keys').set({ revoked_at: null }).where('id', '=', lost.id).execute()
      const hash = await revokeKey(db, ctx.workspaceId, next.id, 1)
      return publishChange(db, services, { kind: 'key', subjectId: next.id, hash: hash as string })
    })
    assert.equal(place.number, 1)
    await awaitPropagation(services, place)
    assert.deepEqual(await directory.verifyKey(next.token), { valid: false, reason: 'revoked' })
    assert.equal((await directory.verifyKey(lost.token)).valid, true)
  })

  test(`${engine}: a second attempt at a revocation waits like the first`, async (t) => {
    const { services, ctx } = await openNode(t, engine)
    const key = await createKey(ctx)
    // A node that does not answer, and never will.
    await services.store.transaction((db) =>
      db
        .insertInto('nodes')
        .values({
          id: 'node_gone',
          host: 'x',
          pid: 1,
          version: '0',
          lease_ms: 900,
          mark: '',
          seen: 0,
          started_at: 0,
          heard_at: 0,
        })
        .execute(),
    )
    const began = performance.now()
    const first = revoke(ctx, key.id).then(() => performance.now())
    await sleep(100)
    await assert.rejects(revoke(ctx, key.id), { code: 'not_found' })
    const told = performance.now()
    assert.ok((await first) - began > 2_000, 'a lease')
    assert.ok(told - began > 2_000, 'told that it is gone before it was')
    const third = performance.now()
    await assert.rejects(revoke(ctx, key.id), { code: 'not_found' })
    assert.ok(performance.now() - third < 1_000, 'waited for a node that was waited for in vain')
  })
}

test('without the database a node goes by its memory for a lease, and then says 503', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const relay = await startRelay(t, database)
  const through = new URL(database)
  through.host = new URL(relay.url).host
  const server = await serve(t, { engine: 'postgres', env: { ADIT_DATABASE_URL: through.href } })
  const edge = await addEdge(server)
  await edge.verify(server.key.token)
  relay.cut()
  const lost = performance.now()
  let last = await edge.verify(server.key.token)
  assert.equal(last.status, 200)
  while (last.status === 200) {
    assert.ok(performance.now() - lost < 2_500, 'a lease is 2 s')
    await sleep(20)
    last = await edge.verify(server.key.token)
  }
  assert.deepEqual([last.status, last.json.error], [503, 'unavailable'])
  relay.mend()
  const ms = await until(
    'it is back',
    async () => (await edge.verify(server.key.token)).status === 200,
    2_000,
  )
  t.diagnostic(`answered again ${Math.round(ms)} ms after the database was back`)
})
