// Serialization conflicts: PostgreSQL runs every transaction as serializable, and aborts those that conflict.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import pg from 'pg'
import { populate, startClients } from '../../support/api/clients.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { startServing } from '../../support/processes/process.ts'

test('40001: with serializable transactions every request succeeds, exactly once', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const operator = new pg.Client(database)
  await operator.connect()
  const name = new URL(database).pathname.slice(1)
  await operator.query(`alter database ${name} set default_transaction_isolation = 'serializable'`)
  const conflicts = async (): Promise<number> => {
    // Only transactions that failed to serialize are rolled back here.
    const { rows } = await operator.query(
      'select xact_rollback::float8 as count from pg_stat_database where datname = current_database()',
    )
    return rows[0].count
  }
  const before = await conflicts()
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' }
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets, 8)
  await sleep(5_000)
  await clients.finish()
  await sleep(1_000)
  const aborted = (await conflicts()) - before
  await operator.end()
  t.diagnostic(
    `${aborted} transactions were aborted by PostgreSQL, ${clients.unavailable.length} requests got 503, ` +
      `the slowest took ${clients.slowestMs} ms; ${clients.ledger.created.size} keys`,
  )
  assert.ok(aborted > 10, 'there were no conflicts')
  await clients.assertExact(database)
})
