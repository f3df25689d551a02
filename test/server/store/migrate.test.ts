import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { pino } from 'pino'
import { createLog } from '../../../src/lib/log.ts'
import { readConfig } from '../../../src/server/config/server.ts'
import type { Services } from '../../../src/server/domain/context.ts'
import { openServices } from '../../../src/server/services.ts'
import { core } from '../../../src/server/store/schema/migrations/0001-core.ts'
import { keyFeed } from '../../../src/server/store/schema/migrations/0002-key-feed.ts'
import { users } from '../../../src/server/store/schema/migrations/0003-users.ts'
import { nodes } from '../../../src/server/store/schema/migrations/0004-nodes.ts'
import { openTestServices } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { createDatabase, createFolder, engines } from '../../support/databases/create.ts'
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

for (const engine of engines) {
  test(`${engine}: a program runs on a newer schema that is compatible with it; otherwise the error tells what to do`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    const { version: known } = await readVersion(services)
    const become = async (row: { version: number; oldest_program: number }) => {
      await services.store.transaction((db) => db.updateTable('schema_version').set(row).execute())
      return row
    }
    atEnd(t, () => services.store.close())

    const row = await become({ version: known + 1, oldest_program: known })
    const { log, lines } = collectingLog()
    const older = await openServices(config, log, 1_000)
    assert.deepEqual({ ...(await readVersion(older)) }, { id: 1, ...row }, 'it was changed')
    await older.store.close()
    assert.deepEqual(
      lines().map(({ schema, known, msg }) => [schema, known, /update soon/.test(msg)]),
      [[known + 1, known, true]],
    )

    // 0: a schema whose compatibility was not recorded.
    for (const oldest of [known + 1, 0]) {
      await become({ version: known + 1, oldest_program: oldest })
      const start = `The database has schema version ${known + 1}; this adit supports versions up to ${known}. Run the newer`
      await assert.rejects(openServices(config, silent, 1_000), ({ message }: Error) =>
        message.startsWith(start),
      )
    }
  })

  test(`${engine}: a database without a recorded compatible version is migrated`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    await services.store.transaction((db) =>
      db.schema.alterTable('schema_version').dropColumn('oldest_program').execute(),
    )
    await services.store.close()
    const again = await openServices(config, silent, 1_000)
    assert.equal((await readVersion(again)).oldest_program, 0)
    await again.store.close()
  })

  test(`${engine}: reopening a database keeps its data`, async (t) => {
    const { services, config } = await openTestServices(t, engine)
    await services.store.transaction(async (db) => {
      await db
        .insertInto('workspaces')
        .values({ id: 'ws_1', slug: 'kept', name: 'Kept', created_at: 1, provisioned_at: null })
        .execute()
    })
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
    const runSix = async (wordsOf: (index: number) => string[]) => {
      const runs = Array.from({ length: 6 }, (_, index) =>
        startProcess(t, [...wordsOf(index), '--json'], { ADIT_DATABASE_URL: database }),
      )
      const ended = await Promise.all(runs.map((run) => run.ended))
      assert.deepEqual(
        ended.map(({ code, stderr }) => [code, stderr]),
        runs.map(() => [0, '']),
      )
    }
    await runSix(() => ['admin', 'migrate'])
    await runSix((index) => ['admin', 'workspace', 'create', `w${index}`])
    const list = await startProcess(t, ['admin', 'workspace', 'list', '--json'], {
      ADIT_DATABASE_URL: database,
    }).ended
    assert.deepEqual(
      JSON.parse(list.stdout).map((workspace: { slug: string }) => workspace.slug),
      ['w0', 'w1', 'w2', 'w3', 'w4', 'w5'],
    )
  })
}

test('sqlite: write-ahead log, full synchronous mode and foreign keys are on', async (t) => {
  const { services } = await openTestServices(t, 'sqlite')
  const { sql } = await import('kysely')
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
        created_at: 1,
        last_used_at: null,
        revoked_at: null,
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

test('sqlite: the migration of the usage tables keeps every row', async (t) => {
  const path = join(createFolder(t), 'adit.db')
  const engineSql = { int64: 'integer', strict: ' strict', clustered: ' strict, without rowid' }
  const before = new DatabaseSync(path)
  for (const migration of [core, keyFeed, users, nodes])
    for (const statement of migration(engineSql)) before.exec(statement)
  before.exec(`
    create table schema_version (id integer primary key, version integer not null, oldest_program integer not null default 0);
    insert into schema_version values (1, 4, 4);
    insert into usage_counters values ('ws_b', 2, 'edge_1', 'e1', 1, 9223372036854775807, 3, 4, null), ('ws_a', 1, 'edge_1', 'e1', 5, 6, 7, 8, 9);
    insert into usage_minutes values ('ws_a', 60000, 'edge_1', 3);
    insert into usage_days values ('ws_b', 2, 1, 9223372036854775807, 3, 4, 5, null), ('ws_a', 1, 5, 6, 7, 8, 9, 10)`)
  const all = (database: DatabaseSync) =>
    ['usage_counters', 'usage_minutes', 'usage_days'].map((table) => {
      const read = database.prepare(`select * from ${table} order by workspace_id`)
      read.setReadBigInts(true)
      return read.all()
    })
  const had = all(before)
  before.close()
  const services = await openServices(readConfig({ ADIT_DATABASE_URL: `sqlite:${path}` }), silent, 1_000)
  await services.store.close()
  const after = new DatabaseSync(path)
  assert.deepEqual(all(after), had)
  assert.equal(had.flat().length, 5)
  const made = after.prepare("select name from sqlite_master where name like 'usage%' order by name").all()
  assert.deepEqual(
    made.map(({ name }) => name),
    ['usage_counters', 'usage_days', 'usage_hours', 'usage_minutes'],
  )
  after.close()
})
