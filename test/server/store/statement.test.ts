// Prepared statements on sessions that do not have them, as behind a pooler that gives each transaction
// another session.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { type Placeholders, statement } from '../../../src/server/store/engine/statement.ts'
import { type Db, openStore } from '../../../src/server/store/engine/store.ts'
import { findKeyByHash, lockKey } from '../../../src/server/store/keys/rows.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { createMigratedDatabase } from '../../support/databases/create.ts'

const EVENTS = { onLostConnection() {}, onStorageFault() {}, onStorageRecovered() {} }

async function open(t: Test) {
  const url = await createMigratedDatabase(t, 'postgres')
  const store = openStore({ engine: 'postgres', url }, EVENTS)
  atEnd(t, () => store.close())
  return store
}

const countPrepared = async (db: Db) =>
  (await sql<{ name: string }>`select name from pg_prepared_statements`.execute(db)).rows.length

test('a statement is prepared once per connection', async (t) => {
  const { db } = await open(t)
  for (let run = 0; run < 3; run++) assert.equal(await findKeyByHash(db, 'none'), undefined)
  assert.equal(await countPrepared(db), 1)
})

test('a read repeats a prepared statement that the session does not have', async (t) => {
  const { db } = await open(t)
  await findKeyByHash(db, 'none')
  await sql`deallocate all`.execute(db)
  assert.equal(await findKeyByHash(db, 'none'), undefined)
  assert.equal(await countPrepared(db), 0)
})

test('a transaction is retried if the session does not have a prepared statement', async (t) => {
  const store = await open(t)
  const key = { workspaceId: 'none', id: 'none' }
  await store.transaction((db) => lockKey(db, key, 'shared'))
  let attempts = 0
  await store.transaction(async (db) => {
    attempts += 1
    await sql`deallocate all`.execute(db)
    assert.equal(await lockKey(db, key, 'shared'), undefined)
  })
  assert.equal(attempts, 2)
})

test('a prepared statement survives a migration that changes its columns', async (t) => {
  const store = await open(t)
  const selectLabel = statement((db: Db, { id }: Placeholders<{ id: string }>) =>
    db.selectFrom('api_keys').select('label').where('id', '=', id),
  )
  await selectLabel(store.db, { id: 'none' })
  await store.transaction((db) => sql`alter table api_keys alter label type varchar(500)`.execute(db))
  assert.deepEqual(await selectLabel(store.db, { id: 'none' }), [])
})
