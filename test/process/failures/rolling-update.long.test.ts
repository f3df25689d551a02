// A newer version migrates the database while nodes of this version still use it.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { populate, startClients } from '../../support/api/clients.ts'
import { connectPostgres, createDatabase } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { startProcess, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

/** A compatible migration of the next version: it only adds. */
const EXPANSION = [
  'alter table api_keys add column note text',
  'alter table usage_days add column weather integer not null default 0',
  'create table notes (id text primary key, body text not null)',
  'create index audit_log_by_target_alone on audit_log (target_id)',
]

test('expanding the schema fails no request, and an old node restarts if it is compatible', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'warn' }
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets)
  await clients.areRunning()

  const operator = await connectPostgres(t, database)
  await operator.query('begin')
  for (const statement of EXPANSION) await operator.query(statement)
  await operator.query('update schema_version set version = version + 1')
  await operator.query('commit')
  const before = clients.ledger.created.size
  await until('the clients make progress', () => clients.ledger.created.size > before + 20)
  await clients.finish()
  assert.deepEqual(clients.unavailable, [])
  await clients.assertExact(database)

  assert.equal((await node.stop()).code, 0)
  const restarted = await startServing(t, env)
  await restarted.waitFor(
    /"database schema is newer than this version of adit but compatible; update soon"/,
    'stderr',
  )
  assert.equal((await fetch(`${restarted.url}/readyz`)).status, 200)

  await operator.query('update schema_version set min_compatible_version = version')
  const rejected = startProcess(t, ['serve'], { ...env, ADIT_PORT: '0', ADIT_SECRET: SECRET })
  const ended = await rejected.ended
  assert.deepEqual([ended.code, ended.stdout], [1, ''])
  assert.match(
    ended.stderr,
    new RegExp(
      '^adit: The database has schema version \\d+; this adit supports versions up to \\d+\\. ' +
        'Run the newer adit that migrated it, or restore a backup from before the upgrade\\.$',
      'm',
    ),
  )
})
