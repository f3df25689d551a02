// Queries inside a transaction must use its connection. On another one they would not see its writes, and on
// PostgreSQL could deadlock on the pool.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { inviteByOperator } from '../../../src/server/domain/accounts/users.ts'
import { createWorkspace } from '../../../src/server/domain/workspaces/manage.ts'
import { isConnectionLost } from '../../../src/server/store/engine/errors.ts'
import { openTestServices, operator } from '../../support/api/server.ts'
import { engines } from '../../support/databases/create.ts'

const OUTSIDE = /outside the current transaction/

for (const engine of engines) {
  test(`${engine}: a query on another connection inside a transaction throws and rolls it back`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    const { db: captured } = store
    const row = { id: 'w', slug: 'w', name: 'w', created_at: 0, provisioned_at: null }
    const count = async (db = store.db) => (await db.selectFrom('workspaces').select('id').execute()).length
    for (const queryOutside of [
      () => count(),
      () => count(captured),
      () => count(store.controlConnection.db),
      () => store.transaction((db) => count(db)),
      () => store.controlConnection.transaction((db) => count(db)),
    ]) {
      const attempt = store.transaction(async (db) => {
        await db.insertInto('workspaces').values(row).execute()
        await queryOutside()
      })
      await assert.rejects(attempt, OUTSIDE)
      assert.equal(await count(), 0)
    }
  })

  test(`${engine}: work started in a transaction may query after it has ended`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    const over = Promise.withResolvers<void>()
    let later: Promise<unknown> | undefined
    await store.transaction(async () => {
      later = over.promise.then(() => store.db.selectFrom('workspaces').select('id').execute())
    })
    over.resolve()
    assert.deepEqual(await later, [])
  })

  test(`${engine}: an operator's invitation reads members in its own transaction`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const { store } = services
    const workspace = await createWorkspace(services, operator, { slug: 'acme' })
    const user = { id: 'u', name: 'Ann', email: 'ann@example.com', email_verified: 1 }
    const times = { created_at: 0, updated_at: 0, disabled_at: null, two_factor_enabled: 0 }
    const member = { workspace_id: workspace.id, user_id: 'u', role: 'owner', created_at: 0 } as const
    await store.transaction(async (db) => {
      await db
        .insertInto('users')
        .values({ ...user, ...times })
        .execute()
      await db.insertInto('members').values(member).execute()
    })
    const invite = (email: string) =>
      inviteByOperator(services, operator, { email, workspace: 'acme', role: 'member' })
    await assert.rejects(invite('ann@example.com'), /already a member of workspace "acme"/)
    assert.equal((await invite('bob@example.com')).email, 'bob@example.com')
  })
}

test('postgres: a session that the server ends by a timeout counts as a lost connection', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const { store } = services
  for (const [setting, code] of [
    ['idle_in_transaction_session_timeout', '25P03'],
    ['transaction_timeout', '25P04'],
  ] as const) {
    const { rows } = await sql`select from pg_settings where name = ${setting}`.execute(store.db)
    // PostgreSQL 16 has no transaction_timeout.
    if (rows.length === 0) continue
    const attempt = store.transaction(async (db) => {
      await sql.raw(`set local ${setting} = 50`).execute(db)
      // A process that stalls reads the error as the response to its next statement.
      Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 300)
      await sql`select 1`.execute(db)
    })
    await assert.rejects(
      attempt,
      (error: { code?: string }) => error.code === code && isConnectionLost(error),
    )
    assert.deepEqual(await store.db.selectFrom('workspaces').select('id').execute(), [])
  }
})
