// Lock contention: other transactions and processes hold the same rows, or the whole database.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import { Fault } from '../../../src/server/domain/fault.ts'
import { createKey } from '../../../src/server/domain/keys/lifecycle.ts'
import { createEdge, listAll } from '../../../src/server/domain/tunnels/edges.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { lockKey, revokeKey } from '../../../src/server/store/keys/rows.ts'
import { databaseUrl, openTestServices, operator, serve } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { connectPostgres, engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { untilBlocked } from '../../support/until.ts'

test('sqlite: while another process holds the write lock, reads succeed and writes time out with 503', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { rows } = await sql<{ file: string }>`pragma database_list`.execute(server.services.store.db)
  const other = new DatabaseSync(rows[0]?.file as string)
  atEnd(t, () => other.close())
  other.exec('begin immediate')
  const startedAt = performance.now()
  const writes = Promise.all(Array.from({ length: 60 }, () => server.call('POST', '/tokens')))
  let written = false
  void writes.then(() => {
    written = true
  })
  let reads = 0
  while (!written) {
    assert.equal((await server.call('GET', '/workspace')).status, 200)
    if (!written) reads += 1
    await sleep(50)
  }
  for (const { status, json } of await writes) assert.deepEqual([status, json.error], [503, 'unavailable'])
  // 5 s each, if they waited one after the other.
  assert.ok(performance.now() - startedAt < 60_000, 'the writes waited one after the other')
  // If a read waited for the lock, it would end when the writes time out.
  assert.ok(reads > 5, `${reads} reads while the writes waited`)
  other.exec('rollback')
  assert.equal((await server.call('POST', '/tokens')).status, 201)
})

test('postgres: a transaction that lost a deadlock is retried, and both commit', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const rows = ['a', 'b'].map((slug) => ({ id: slug, slug, name: slug, created_at: 0, provisioned_at: null }))
  await services.store.transaction(async (db) => {
    await db.insertInto('workspaces').values(rows).execute()
  })
  let attempts = 0
  let locked = 0
  const bothHaveLocked = Promise.withResolvers<void>()
  const touchBoth = (first: string, second: string) =>
    services.store.transaction(async (db) => {
      const touch = (id: string) =>
        db
          .updateTable('workspaces')
          .set((row) => ({ created_at: row('created_at', '+', 1) }))
          .where('id', '=', id)
          .execute()
      attempts += 1
      await touch(first)
      locked += 1
      if (locked === 2) bothHaveLocked.resolve()
      await bothHaveLocked.promise
      await touch(second)
    })
  await Promise.all([touchBoth('a', 'b'), touchBoth('b', 'a')])
  assert.ok(attempts > 2, 'there was no deadlock')
  const counts = await services.store.db.selectFrom('workspaces').select('created_at').execute()
  assert.deepEqual(pluck(counts, 'created_at'), [2, 2])
})

test('postgres: requests with the same key do not wait for each other, its revocation waits for them', async (t) => {
  const { services, database } = await openTestServices(t, 'postgres')
  const { store } = services
  const { id: workspaceId } = await createWorkspace(services, operator, { slug: 'acme' })
  const { id } = await createKey({ ...services, actor: operator, workspaceId })
  const request = await connectPostgres(t, database)
  await request.query('begin')
  await request.query('select from api_keys where id = $1 for share', [id])
  const lock = () => store.transaction((db) => lockKey(db, { workspaceId, id }, 'shared'))
  assert.equal(await lock(), 'active')
  let isRevoked = false
  const revoking = store.transaction(async (db) => {
    isRevoked = (await revokeKey(db, { workspaceId, id }, 1)) !== undefined
  })
  await untilBlocked(store)
  assert.equal(isRevoked, false)
  await request.query('commit')
  await revoking
  assert.equal(await lock(), 'revoked')
})

test('postgres: requests blocked by a lock time out with 503, and succeed once it is released', async (t) => {
  const server = await serve(t, { engine: 'postgres' })
  const holder = await connectPostgres(t, databaseUrl(server))
  await holder.query('begin; lock table api_keys in access exclusive mode')
  const startedAt = performance.now()
  const responses = await Promise.all([server.call('GET', '/workspace'), server.call('POST', '/tokens')])
  assert.deepEqual(pluck(responses, 'status'), [503, 503])
  assert.ok(performance.now() - startedAt < 10_000)
  await holder.query('rollback')
  assert.equal((await server.call('POST', '/tokens')).status, 201)
})

for (const engine of engines)
  test(`${engine}: of concurrent creations of edges with one name, only one succeeds`, async (t) => {
    const { services } = await openTestServices(t, engine)
    // Opens the connections of the pool: otherwise the first creation is over before the second is connected.
    const six = Array.from({ length: 6 })
    await Promise.all(six.map(() => services.store.transaction(() => sleep(50))))
    const results = await Promise.allSettled(six.map(() => createEdge(services, operator, 'fra-1')))
    const errors = results.flatMap((result) => (result.status === 'rejected' ? [result.reason] : []))
    assert.equal(errors.length, 5)
    for (const error of errors) {
      assert.ok(error instanceof Fault, String(error))
      assert.equal(error.code, 'conflict')
    }
    assert.equal((await listAll(services)).length, 1)
  })
