// `adit admin distribute` on a real cluster, while two nodes serve: from plain PostgreSQL, and repeated after
// being killed.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { placements } from '../../src/server/store/engine/postgres/citus.ts'
import { populate, startClients } from '../support/api/clients.ts'
import { atEnd } from '../support/cleanup.ts'
import { coordinatorUrl, createCitusSchema, onCoordinator } from '../support/databases/citus.ts'
import { query } from '../support/databases/client.ts'
import { migrate } from '../support/databases/migrate.ts'
import { run, startProcess, startServing } from '../support/processes/process.ts'

/** Enough that copying them takes a while. */
const MANY_ROWS = 120_000

interface Line {
  table: string
  placement: string
  changed: boolean
}

async function distribute(t: TestContext, database: string): Promise<Line[]> {
  const { code, stdout, stderr } = await run(t, ['admin', 'distribute', '--json'], {
    ADIT_DATABASE_URL: database,
  })
  assert.equal(code, 0, stderr)
  return JSON.parse(stdout)
}

const changedTables = (lines: Line[]) => lines.filter(({ changed }) => changed).map(({ table }) => table)

const usageTables = Object.keys(placements).filter((table) => table.startsWith('usage_'))

/** Only usage tables are known to Citus, sharded by workspace and colocated; no row is left behind. */
async function assertPlaced(database: string): Promise<void> {
  const placed = await query(
    database,
    `select c.relname as table, column_to_column_name(p.logicalrelid, p.partkey) as column, p.colocationid as group,
       pg_relation_size(c.oid)::integer as bytes
     from pg_dist_partition as p join pg_class as c on c.oid = p.logicalrelid
     where pg_table_is_visible(c.oid) order by 1`,
  )
  const { group } = placed[0]
  assert.deepEqual(
    placed,
    usageTables.toSorted().map((table) => ({ table, column: 'workspace_id', group, bytes: 0 })),
  )
}

/** Empty counters of other workspaces. */
const fill = (database: string) =>
  query(
    database,
    `insert into usage_counters
     select 'wsp_' || i % 1000, i / 1000 * 86400000::bigint, 'edg_x', 'e', 0, 0, 0, 0, null
     from generate_series(1, ${MANY_ROWS}) as i`,
  )

/** Clients use two nodes before, during and after the work; the usage and keys that they see are exact. */
async function whileServing(t: TestContext, database: string, work: () => Promise<void>): Promise<void> {
  const secrets = await populate(database)
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' }
  const nodes = [await startServing(t, env), await startServing(t, env)]
  const clients = startClients(
    nodes.map(({ url }) => url),
    secrets,
  )
  await clients.areRunning()
  const began = performance.now()
  await work()
  const seconds = ((performance.now() - began) / 1_000).toFixed(1)
  await sleep(1_000)
  await clients.assertServing()
  await clients.finish()
  t.diagnostic(
    `${seconds} s; ${clients.responses} responses, ${clients.unavailable.length} of them 503, the slowest in ` +
      `${clients.slowestMs} ms; ${clients.ledger.created.size} keys created`,
  )
  await clients.assertExact(database)
}

test('a new database is distributed, and a second run changes nothing', async (t) => {
  const database = await createCitusSchema(t)
  await migrate(database)
  assert.deepEqual(changedTables(await distribute(t, database)), usageTables)
  await assertPlaced(database)
  assert.deepEqual(changedTables(await distribute(t, database)), [])
  const { stdout } = await run(t, ['admin', 'distribute'], { ADIT_DATABASE_URL: database })
  assert.match(stdout, /^TABLE +PLACEMENT +CHANGED\n/)
  assert.match(stdout, /^usage_days +sharded by workspace +no$/m)
  assert.match(stdout, /^workspaces +coordinator +no$/m)
})

test('timeouts of the role do not stop the command', async (t) => {
  const database = await createCitusSchema(t)
  await migrate(database)
  await fill(database)
  await distribute(t, `${database}%20-c%20statement_timeout=300`)
  await assertPlaced(database)
})

test('of two commands at the same time, one finds nothing to do', async (t) => {
  const database = await createCitusSchema(t)
  await migrate(database)
  await fill(database)
  const both = await Promise.all([distribute(t, database), distribute(t, database)])
  const changed = both.flatMap(changedTables)
  assert.deepEqual(changed.toSorted(), usageTables.toSorted())
  await assertPlaced(database)
})

test('plain PostgreSQL is distributed while nodes serve', async (t) => {
  const database = await createCitusSchema(t)
  await migrate(database)
  await fill(database)
  await whileServing(t, database, async () => {
    assert.deepEqual(changedTables(await distribute(t, database)), usageTables)
  })
  await assertPlaced(database)
  const [{ count }] = await query(database, "select count(*)::integer from usage_counters where epoch = 'e'")
  assert.equal(count, MANY_ROWS)
})

test('a command that is killed again and again is completed by the next run', async (t) => {
  const database = await createCitusSchema(t)
  await migrate(database)
  await fill(database)
  await whileServing(t, database, async () => {
    for (const ms of [900, 1_200, 1_800, 3_000, 5_000]) {
      const { child, ended } = startProcess(t, ['admin', 'distribute'], { ADIT_DATABASE_URL: database })
      await Promise.race([sleep(ms), ended])
      child.kill('SIGKILL')
      await ended
    }
    await distribute(t, database)
  })
  await assertPlaced(database)
  const [{ count }] = await query(database, "select count(*)::integer from usage_counters where epoch = 'e'")
  assert.equal(count, MANY_ROWS)
})

test('errors name the cause and the remedy', async (t) => {
  const rejected = async (database: string) => {
    const ended = await run(t, ['admin', 'distribute'], { ADIT_DATABASE_URL: database })
    assert.deepEqual([ended.code, ended.stdout], [1, ''])
    return ended.stderr
  }
  await onCoordinator('create database adit_without_extension')
  atEnd(t, () => onCoordinator('drop database adit_without_extension with (force)'))
  const without = new URL(coordinatorUrl())
  without.pathname = '/adit_without_extension'
  assert.match(await rejected(without.href), /Run "create extension citus" as a superuser/)

  const database = await createCitusSchema(t)
  await migrate(database)
  await query(database, "select create_reference_table('schema_version')")
  assert.match(await rejected(database), /schema_version must be a plain table on the coordinator\. Run/)
  await query(database, "select undistribute_table('schema_version')")
  await query(
    database,
    "select create_distributed_table('usage_counters', 'edge_id', colocate_with => 'none')",
  )
  assert.match(
    await rejected(database),
    /usage_counters is already placed differently \(distributed by edge_id\)\. Undo that/,
  )
})
