import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { pino } from 'pino'
import { createLog } from '../../../src/lib/log.ts'
import { readConfig } from '../../../src/server/config/server.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { openServices } from '../../../src/server/services.ts'
import { openStore, type Store } from '../../../src/server/store/engine/store.ts'
import {
  currentSchema,
  type MigrateOptions,
  migrate,
  readSchemaState,
} from '../../../src/server/store/schema/migrate.ts'
import { openTestServices } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createDatabase, createFolder, engines } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { startProcess } from '../../support/processes/process.ts'

const silent = createLog('silent')

const readVersion = (services: Services) =>
  services.store.db.selectFrom('schema_version').selectAll().executeTakeFirstOrThrow()

/** A log that collects its entries. */
function collectingLog() {
  const written: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => written.push(line) })
  return { log, lines: () => written.map((line) => JSON.parse(line)) }
}

/** A made-up second version: a column with a value, a table, and a row for each workspace. */
const nextSchema = {
  migrations: [
    ...currentSchema.migrations,
    ({ int64, strict }: { int64: string; strict: string }) => [
      `alter table workspaces add column weather ${int64} not null default 7`,
      `create table notes (workspace_id text primary key references workspaces (id), body text not null)${strict}`,
      'insert into notes (workspace_id, body) select id, name from workspaces',
    ],
  ],
  minCompatibleVersion: 1,
}

const noEvents = { onLostConnection() {}, onStorageFault() {}, onStorageRecovered() {} }

const noRetry: MigrateOptions = {
  timeoutMs: 5_000,
  onRetry: (error) => assert.fail(error as Error),
  onUpgrade: async () => {},
}

const readNotes = async (store: Store) =>
  (
    await sql<{ body: string; weather: number }>`
    select body, weather from notes join workspaces on workspaces.id = workspace_id`.execute(store.db)
  ).rows

const addWorkspace = (store: Store) =>
  store.transaction((db) =>
    db
      .insertInto('workspaces')
      .values({ id: 'ws_1', slug: 'kept', name: 'Kept', created_at: 1, provisioned_at: null })
      .execute(),
  )

for (const engine of engines) {
  test(`${engine}: several nodes migrate to the next version at once, and one of them does it`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    await addWorkspace(services.store)
    assert.equal((await readSchemaState(services.store.db, nextSchema)).version, 1)
    const stores = [services.store]
    for (let others = 0; others < 4; others++) stores.push(openStore(config.database, noEvents))
    atEnd(t, async () => {
      for (const store of stores) await store.close()
    })
    const upgrades: unknown[] = []
    const onUpgrade: MigrateOptions['onUpgrade'] = async (_, versions) => void upgrades.push(versions)
    await Promise.all(stores.map((store) => migrate(store, { ...noRetry, onUpgrade }, nextSchema)))
    assert.deepEqual(upgrades, [{ from: 1, to: 2 }])
    const [node] = stores as [Store]
    assert.deepEqual({ ...(await readVersion(services)) }, { id: 1, version: 2, min_compatible_version: 1 })
    assert.deepEqual(
      (await readNotes(node)).map((row) => ({ ...row })),
      [{ body: 'Kept', weather: 7 }],
    )
    await migrate(node, { ...noRetry, onUpgrade }, nextSchema)
    assert.equal(upgrades.length, 1, 'it was migrated again')
    // The program of version 1 runs on it, because it is compatible.
    assert.deepEqual(await migrate(node, noRetry), { schema: 2, known: 1 })
  })

  test(`${engine}: an empty database gets every version at once`, async (t) => {
    const config = readConfig({ ADIT_DATABASE_URL: await createDatabase(t, engine) })
    const store = openStore(config.database, noEvents)
    atEnd(t, () => store.close())
    const onUpgrade = () => assert.fail('there was nothing to upgrade')
    await migrate(store, { ...noRetry, onUpgrade }, nextSchema)
    assert.deepEqual(await readNotes(store), [])
    assert.equal((await readSchemaState(store.db, nextSchema)).version, 2)
  })

  test(`${engine}: a migration that fails changes nothing`, async (t) => {
    const { services } = await openTestServices(t, engine)
    const broken = () => ['create table notes (id text primary key)', 'alter table nothing add column x text']
    const schema = { migrations: [...currentSchema.migrations, broken], minCompatibleVersion: 1 }
    await assert.rejects(migrate(services.store, noRetry, schema), /nothing/)
    assert.equal((await readVersion(services)).version, 1)
    await migrate(services.store, noRetry, nextSchema)
    assert.deepEqual(await readNotes(services.store), [])
  })

  test(`${engine}: a program runs on a newer schema that is compatible with it; otherwise the error tells what to do`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    const { version: known } = await readVersion(services)
    const become = async (row: { version: number; min_compatible_version: number }) => {
      await services.store.transaction((db) => db.updateTable('schema_version').set(row).execute())
      return row
    }
    atEnd(t, () => services.store.close())

    const row = await become({ version: known + 1, min_compatible_version: known })
    const { log, lines } = collectingLog()
    const older = await openServices(config, log, 1_000)
    assert.deepEqual({ ...(await readVersion(older)) }, { id: 1, ...row }, 'it was changed')
    await older.store.close()
    assert.deepEqual(
      lines().map(({ schema, known, msg }) => [schema, known, /update soon/.test(msg)]),
      [[known + 1, known, true]],
    )

    await become({ version: known + 1, min_compatible_version: known + 1 })
    const start = `The database has schema version ${known + 1}; this adit supports versions up to ${known}. Run the newer`
    await assert.rejects(openServices(config, silent, 1_000), ({ message }: Error) =>
      message.startsWith(start),
    )
  })

  test(`${engine}: a database from before the first release is rejected, and not changed`, async (t) => {
    const config = readConfig({ ADIT_DATABASE_URL: await createDatabase(t, engine) })
    const store = openStore(config.database, noEvents)
    atEnd(t, () => store.close())
    // The last layout, the first one, and one whose version is that of this program.
    for (const [columns, values] of [
      ['version integer, oldest_program integer', '23, 4'],
      ['version integer', '3'],
      ['version integer, oldest_program integer', '1, 0'],
    ]) {
      await store.transaction(async (db) => {
        await sql.raw('drop table if exists schema_version').execute(db)
        await sql.raw(`create table schema_version (id integer primary key, ${columns})`).execute(db)
        await sql.raw(`insert into schema_version values (1, ${values})`).execute(db)
      })
      const before = { ...(await store.db.selectFrom('schema_version').selectAll().executeTakeFirst()) }
      const message =
        'The database was created by an adit from before the first release, and cannot be upgraded. Set ' +
        'ADIT_DATABASE_URL to a new database, or move the SQLite file away, and start again.'
      await assert.rejects(openServices(config, silent, 1_000), { message })
      assert.equal((await readSchemaState(store.db)).incompatibility?.message, message)
      assert.deepEqual(
        { ...(await store.db.selectFrom('schema_version').selectAll().executeTakeFirst()) },
        before,
      )
    }
  })

  test(`${engine}: reopening a database keeps its data`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    await addWorkspace(services.store)
    await services.store.close()
    const again = await openServices(config, silent, 1_000)
    assert.equal(
      (await again.store.db.selectFrom('workspaces').select('slug').executeTakeFirst())?.slug,
      'kept',
    )
    await again.store.close()
  })

  test(`${engine}: six processes that start simultaneously on an empty database all succeed`, async (t) => {
    const database = await createDatabase(t, engine)
    const runSix = async (getArgs: (index: number) => string[]) => {
      const runs = Array.from({ length: 6 }, (_, index) =>
        startProcess(t, [...getArgs(index), '--json'], { ADIT_DATABASE_URL: database }),
      )
      const ended = await Promise.all(runs.map((run) => run.ended))
      assert.deepEqual(
        pluck(ended, 'code', 'stderr'),
        runs.map(() => [0, '']),
      )
    }
    await runSix(() => ['admin', 'migrate'])
    await runSix((index) => ['admin', 'workspace', 'create', `w${index}`])
    const list = await startProcess(t, ['admin', 'workspace', 'list', '--json'], {
      ADIT_DATABASE_URL: database,
    }).ended
    assert.deepEqual(pluck(JSON.parse(list.stdout), 'slug'), ['w0', 'w1', 'w2', 'w3', 'w4', 'w5'])
  })
}

test('sqlite: write-ahead log, full synchronous mode and foreign keys are on', async (t) => {
  const { services } = await openTestServices(t, 'sqlite')
  const pragma = async (name: string) =>
    Object.values(
      (await services.store.transaction((db) => sql.raw<object>(`pragma ${name}`).execute(db))).rows[0] ?? {},
    )[0]
  assert.equal(await pragma('journal_mode'), 'wal')
  assert.equal(await pragma('synchronous'), 2)
  assert.equal(await pragma('foreign_keys'), 1)
  const insertion = services.store.transaction((db) =>
    db
      .insertInto('api_keys')
      .values({
        id: 'k',
        workspace_id: 'none',
        label: '',
        hash: 'h',
        last_four: '',
        created_by_kind: 'operator',
        created_by: 'root',
        created_at: 1,
      })
      .execute(),
  )
  await assert.rejects(insertion, /FOREIGN KEY/)
  await assert.rejects(sql`delete from api_keys`.execute(services.store.db), /readonly/)
  await services.store.close()
})

test('sqlite: a file that is not a database is rejected with a plain error', async (t) => {
  const file = join(createFolder(t), 'notes.txt')
  writeFileSync(file, 'This is a text of some length, and certainly no database.'.repeat(40))
  for (const [url, message] of [
    [`sqlite:${file}`, /not a database/],
    [`sqlite:${file}/adit.db`, /ENOTDIR|EEXIST/],
  ] as const) {
    const config = readConfig({ ADIT_DATABASE_URL: url })
    await assert.rejects(async () => openServices(config, silent, 100), message)
  }
})
