// Checks of `adit admin doctor` of the database, on both engines, and the command itself.
import assert from 'node:assert/strict'
import { chmodSync, existsSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { runChecks } from '../../../src/server/doctor/check.ts'
import { checkSchema, databaseChecks } from '../../../src/server/doctor/database.ts'
import { postgresFindings } from '../../../src/server/doctor/postgres-settings.ts'
import { replicationFindings } from '../../../src/server/doctor/replication.ts'
import type { DatabaseTarget } from '../../../src/server/store/engine/store.ts'
import { readPostgresFacts, type Standbys } from '../../../src/server/store/maintenance/diagnostics.ts'
import { currentSchema, readSchemaState } from '../../../src/server/store/schema/migrate.ts'
import { openTestServices, serve } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { query } from '../../support/databases/client.ts'
import { createDatabase, createFolder, engines } from '../../support/databases/create.ts'
import { SECRET } from '../../support/databases/migrated-databases.ts'
import { listen } from '../../support/network/listen.ts'
import { pluck } from '../../support/pluck.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run } from '../../support/processes/process.ts'

const TIMEOUT_MS = 15_000

/** Findings by check, as `status: message`. */
async function examine(target: DatabaseTarget, clock: () => number = Date.now) {
  const { checks, close } = databaseChecks({ database: target }, clock)
  const results = await runChecks(checks, TIMEOUT_MS)
  await close()
  return Object.groupBy(
    results.map(({ check, status, message }) => ({ check, text: `${status}: ${message}` })),
    ({ check }) => check,
  )
}
const findText = (found: Awaited<ReturnType<typeof examine>>, check: string) =>
  (found[check] ?? []).map(({ text }) => text).join('\n')

const toTarget = (url: string): DatabaseTarget =>
  url.startsWith('sqlite:')
    ? { engine: 'sqlite', path: url.slice('sqlite:'.length) }
    : { engine: 'postgres', url }

for (const engine of engines) {
  test(`${engine}: a running server has a current schema, a correct clock and a node with a lease`, async (t) => {
    const { config } = await serve(t, { engine })
    const found = await examine(config.database)
    assert.match(findText(found, 'schema'), /^ok: Schema version \d+, no pending migrations$/)
    assert.match(findText(found, 'clock'), /^ok: The clock is 0\.\d{3} s (ahead of|behind) the database/)
    assert.equal(findText(found, 'nodes'), 'ok: 1 running, leases held, all up to date')
    if (engine === 'sqlite') assert.match(findText(found, 'database'), /^ok: SQLite 3\.\d+/)
  })

  test(`${engine}: a clock that differs from the database is a warning, and by 30 seconds a problem`, async (t) => {
    const { config, services } = await openTestServices(t, engine)
    await services.store.close()
    const clockAt = async (offsetMs: number) =>
      findText(await examine(config.database, () => Date.now() + offsetMs), 'clock')
    assert.match(
      await clockAt(5_000),
      /^warning: The clock of this machine is [45]\.\d+ s ahead of the database\./,
    )
    assert.match(
      await clockAt(-90_000),
      /^problem: The clock of this machine is (89|90)\.\d+ s behind the database\./,
    )
  })

  test(`${engine}: a node without heartbeat, ahead of time or of another version is a warning`, async (t) => {
    const { config, services } = await openTestServices(t, engine)
    const { store } = services
    assert.equal(findText(await examine(config.database), 'nodes'), 'warning: No node is running.')
    const insert = (id: string, heartbeat_at: number, version: string) =>
      store.transaction((tx) =>
        tx
          .insertInto('nodes')
          .values({
            id,
            host: 'web-1',
            pid: 7,
            version,
            acknowledged_sequence: 0,
            acknowledged_checksum: '',
            lease_ms: 2_000,
            started_at: 0,
            heartbeat_at,
          })
          .execute(),
      )
    await insert('node_dead', Date.now() - 60_000, '0.1.0')
    await insert('node_ahead', Date.now() + 60_000, '0.2.0')
    const nodes = findText(await examine(config.database), 'nodes')
    await store.close()
    assert.match(nodes, /^warning: Node node_dead \(web-1, process 7\) has sent no heartbeat since 20/m)
    assert.match(nodes, /^warning: The clock of Node node_ahead .* ahead of the database\.$/m)
    assert.match(nodes, /^warning: Nodes run different versions: 0\.1\.0, 0\.2\.0\.$/m)
  })

  test(`${engine}: pending migrations and schemas of other versions are found, and nothing is migrated`, async (t) => {
    const { config, services } = await openTestServices(t, engine)
    const { store } = services
    const { known } = await readSchemaState(store.db)
    const schemaAt = async (version: number, compatible: number) => {
      await store.transaction((tx) =>
        sql`update schema_version set version = ${version}, min_compatible_version = ${compatible}`.execute(
          tx,
        ),
      )
      return findText(await examine(config.database), 'schema')
    }
    const next = { migrations: [...currentSchema.migrations, () => []], minCompatibleVersion: 1 }
    assert.match(
      (await checkSchema(store, next)).message,
      /^Migrations are pending: the schema has version 1 of 2\.$/,
    )
    assert.match(await schemaAt(known + 1, known), /^warning: .* this adit supports versions up to/)
    assert.match(await schemaAt(known + 1, known + 1), /^problem: .* supports versions up to/)
    assert.equal((await readSchemaState(store.db)).version, known + 1)
    await store.transaction((tx) =>
      sql`alter table schema_version rename column min_compatible_version to oldest_program`.execute(tx),
    )
    const unreleased = await examine(config.database)
    assert.match(findText(unreleased, 'schema'), /^problem: .* from before the first release/)
    assert.equal(findText(unreleased, 'nodes'), 'skipped: The database cannot be used.')
    await store.close()
  })

  test(`${engine}: a database without tables is a warning, and stays empty`, async (t) => {
    const target = toTarget(await createDatabase(t, engine))
    if (target.engine === 'sqlite') writeFileSync(target.path, '', { mode: 0o600 })
    for (let times = 0; times < 2; times++) {
      const found = await examine(target)
      assert.equal(findText(found, 'schema'), 'warning: The database has no tables yet.')
      assert.equal(findText(found, 'nodes'), 'skipped: The database has no tables yet.')
    }
  })
}

const unusable = (found: Awaited<ReturnType<typeof examine>>) => {
  for (const check of ['schema', 'clock', 'nodes'])
    assert.equal(findText(found, check), 'skipped: The database cannot be used.')
  return findText(found, 'database')
}

test('postgres: a closed port, a server that does not respond and a missing database are problems', async (t) => {
  const closed = await examine(toTarget(`postgres://adit@127.0.0.1:${await freePort()}/adit`))
  assert.match(unusable(closed), /^problem: Cannot use the PostgreSQL database: .*ECONNREFUSED/)

  const port = await listen(t, createServer())
  const hanging = await examine(toTarget(`postgres://adit@127.0.0.1:${port}/adit`))
  assert.match(unusable(hanging), /^problem: Cannot use the PostgreSQL database: .*timeout/)

  const missing = new URL(await createDatabase(t, 'postgres'))
  missing.pathname = '/adit_missing'
  assert.match(
    unusable(await examine(toTarget(missing.href))),
    /^problem: Cannot use the PostgreSQL database: .* does not exist/,
  )
})

test('sqlite: a missing file and one that is not a database are problems, and no file is created', async (t) => {
  const path = join(createFolder(t), 'adit.db')
  const target = { engine: 'sqlite', path } as const
  assert.equal(unusable(await examine(target)), `problem: No database at ${path}.`)
  assert.ok(!existsSync(path))
  writeFileSync(path, 'not a database, but longer than its header. '.repeat(100))
  assert.match(unusable(await examine(target)), /^problem: .*not a SQLite database/)
})

/** A database with another encoding, whose user may not create tables. */
async function createRestricted(t: Test): Promise<URL> {
  const url = new URL(await createDatabase(t, 'postgres'))
  const name = `${url.pathname.slice(1)}_ascii`
  const server = process.env.TEST_POSTGRES_URL as string
  await query(server, `create database ${name} encoding 'SQL_ASCII' locale 'C' template template0`)
  await query(server, `create role ${name} login password 'test'`)
  atEnd(t, async () => {
    await query(server, `drop database ${name} with (force)`)
    await query(server, `drop role ${name}`)
  })
  url.pathname = `/${name}`
  await query(url.href, 'revoke create on schema public from public')
  url.username = name
  url.password = 'test'
  return url
}

test('postgres: settings that endanger data, the encoding and missing privileges are found', async (t) => {
  const url = await createRestricted(t)
  const rows = await query(
    process.env.TEST_POSTGRES_URL as string,
    "select name, setting from pg_settings where name in ('fsync', 'autovacuum')",
  )
  const settings = Object.fromEntries(rows.map(({ name, setting }) => [name, setting]))
  const found = findText(await examine(toTarget(url.href)), 'database')
  assert.match(found, /^problem: The encoding of the database is SQL_ASCII/m)
  assert.match(found, /^warning: The user may not create tables/m)
  assert.equal(/^problem: fsync is off/m.test(found), settings.fsync === 'off')
  assert.equal(/^warning: autovacuum is off/m.test(found), settings.autovacuum === 'off')
})

test('postgres: an old version and few free connections are warnings', async (t) => {
  const { services } = await openTestServices(t, 'postgres')
  const facts = await readPostgresFacts(services.store)
  const safe = { ...facts, fsync: 'on', fullPageWrites: 'on', autovacuum: 'on' }
  const messages = (change: object, workers = 1) =>
    postgresFindings({ ...safe, ...change }, workers).map(({ message }) => message)
  assert.deepEqual(messages({}), [])
  assert.deepEqual(messages({ version: '13.4', versionNumber: 130_004 }), ['PostgreSQL 13.4 is not tested.'])
  assert.deepEqual(messages({ maxConnections: 20, reservedConnections: 3, usedConnections: 10 }), [
    '7 of 20 connections are free, and this configuration uses up to 12.',
  ])
  assert.deepEqual(messages({ maxConnections: 100, reservedConnections: 3, usedConnections: 10 }, 8), [
    '87 of 100 connections are free, and this configuration uses up to 96.',
  ])
})

test('postgres: missing synchronous standbys, and fencing that is missing or has no effect, are found', () => {
  const statuses = (change: Partial<Standbys>, fencing: 'operator' | 'strict' = 'strict') => {
    const standbys = { names: '*', connected: 1, synchronous: 1, isVisible: true, ...change }
    return replicationFindings(standbys, fencing).map(({ status }) => status)
  }
  assert.deepEqual(statuses({}), ['ok'])
  assert.deepEqual(statuses({}, 'operator'), ['ok', 'warning'])
  assert.deepEqual(statuses({ synchronous: 0 }), ['problem'])
  assert.deepEqual(statuses({ synchronous: 0, isVisible: false }), ['ok'])
  assert.deepEqual(statuses({ connected: 0, synchronous: 0 }), ['problem'])
  assert.deepEqual(statuses({ names: '' }), ['warning'])
  assert.deepEqual(statuses({ names: '' }, 'operator'), [])
})

test('admin doctor: problems are exit code 1, warnings are not; --json has status, message and remedy', async (t) => {
  const { config, services } = await openTestServices(t, 'sqlite')
  await services.store.close()
  const { path } = config.database as { path: string }
  const env = { ADIT_DATABASE_URL: `sqlite:${path}`, HOME: createFolder(t), ADIT_SECRET: SECRET }
  chmodSync(path, 0o600)
  const fine = await run(t, ['admin', 'doctor', '--json'], { ...env, ADIT_TYPO: '1' })
  const { problems, warnings, findings } = JSON.parse(fine.stdout)
  const typo = findings.find(({ message }: { message: string }) => message.startsWith('ADIT_TYPO'))
  assert.deepEqual([fine.code, problems, fine.stderr], [0, 0, ''])
  assert.ok(warnings >= 2, 'the unknown variable and the server that is down')
  assert.deepEqual(typo, {
    check: 'configuration',
    status: 'warning',
    message: 'ADIT_TYPO is not a setting and is ignored.',
    remedy: 'Correct its name, or remove it.',
  })

  chmodSync(path, 0o644)
  const broken = await run(t, ['admin', 'doctor'], { ...env, ADIT_PORT: 'x' })
  assert.equal(broken.code, 1)
  assert.match(broken.stdout, /^problem {2}configuration {2}ADIT_PORT must be a whole number/m)
  assert.match(broken.stdout, /^problem {2}files/m)
  assert.match(broken.stdout, /→ Run: chmod go=/)
  assert.match(broken.stdout, /^ok {7}schema/m, 'an invalid setting does not stop the other checks')
  assert.match(broken.stderr, /^adit: Found 2 problems and \d warnings?\.\n$/)
})

test('admin doctor: works without a database and with an invalid ADIT_DATABASE_URL', async (t) => {
  const { code, stdout } = await run(t, ['admin', 'doctor', '--json'], {
    ADIT_DATABASE_URL: 'mysql://nowhere',
    HOME: createFolder(t),
  })
  const { findings } = JSON.parse(stdout)
  const findStatus = (name: string) =>
    pluck(
      findings.filter(({ check }: { check: string }) => check === name),
      'status',
    )
  assert.equal(code, 1)
  assert.deepEqual(findStatus('configuration'), ['problem'])
  assert.deepEqual(findStatus('database'), ['skipped'])
  assert.deepEqual(findStatus('mail'), ['skipped'])
})
