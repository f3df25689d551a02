// Serialization conflicts: PostgreSQL runs every transaction as serializable, and aborts those that conflict.
import { test } from 'node:test'
import { populate, startClients } from '../../support/api/clients.ts'
import { query } from '../../support/databases/client.ts'
import { createDatabase } from '../../support/databases/create.ts'
import { startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

test('40001: with serializable transactions every request succeeds, exactly once', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const name = new URL(database).pathname.slice(1)
  await query(database, `alter database ${name} set default_transaction_isolation = 'serializable'`)
  const conflicts = async (): Promise<number> => {
    // Only transactions that failed to serialize are rolled back here.
    const [{ count }] = await query(
      database,
      'select xact_rollback::float8 as count from pg_stat_database where datname = current_database()',
    )
    return count
  }
  const before = await conflicts()
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' }
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets, 8)
  let aborted = 0
  await until('there are conflicts', async () => {
    aborted = (await conflicts()) - before
    return aborted > 10
  })
  await clients.finish()
  t.diagnostic(
    `${aborted} transactions were aborted by PostgreSQL, ${clients.unavailable.length} requests got 503, ` +
      `the slowest took ${clients.slowestMs} ms; ${clients.ledger.created.size} keys`,
  )
  await clients.assertExact(database)
})
