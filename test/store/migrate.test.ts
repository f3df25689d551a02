import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pino } from 'pino'
import { readConfig } from '../../src/config.ts'
import type { World } from '../../src/domain/context.ts'
import { createLog } from '../../src/log.ts'
import { openWorld } from '../../src/world.ts'
import { atEnd } from '../support/cleanup.ts'
import { createDatabase, createFolder, engines } from '../support/databases.ts'
import { startProcess } from '../support/process.ts'
import { openTestWorld } from '../support/server.ts'

const silent = createLog('silent')

const readVersion = (world: World) =>
  world.store.db.selectFrom('schema_version').selectAll().executeTakeFirstOrThrow()

/** A log to look into. */
function keepingLog() {
  const written: string[] = []
  const log = pino({ level: 'info' }, { write: (line) => written.push(line) })
  return { log, lines: () => written.map((line) => JSON.parse(line)) }
}

for (const engine of engines) {
  test(`${engine}: on a newer schema a program runs if that asks for no newer one, and else says what to do`, async (t) => {
    const { world, config } = await openTestWorld(t, engine)
    const { version: known } = await readVersion(world)
    const become = async (row: { version: number; oldest_program: number }) => {
      await world.store.transaction((db) => db.updateTable('schema_version').set(row).execute())
      return row
    }
    atEnd(t, () => world.store.close())

    const row = await become({ version: known + 1, oldest_program: known })
    const { log, lines } = keepingLog()
    const older = await openWorld(config, log, 1_000)
    assert.deepEqual({ ...(await readVersion(older)) }, { id: 1, ...row }, 'it was changed')
    await older.store.close()
    assert.deepEqual(
      lines().map(({ schema, known, msg }) => [schema, known, /update it soon/.test(msg)]),
      [[known + 1, known, true]],
    )

    // The latter is what nobody wrote: a schema of which it is not known whom it suits.
    for (const oldest of [known + 1, 0]) {
      await become({ version: known + 1, oldest_program: oldest })
      const words = `The database has schema ${known + 1}, which this adit cannot run on: it knows schemas up to ${known}. Run the newer`
      await assert.rejects(openWorld(config, silent, 1_000), ({ message }: Error) =>
        message.startsWith(words),
      )
    }
  })

  test(`${engine}: a database from before programs of two versions could share one is brought up to date`, async (t) => {
    const { world, config } = await openTestWorld(t, engine)
    await world.store.transaction((db) =>
      db.schema.alterTable('schema_version').dropColumn('oldest_program').execute(),
    )
    await world.store.close()
    const again = await openWorld(config, silent, 1_000)
    assert.equal((await readVersion(again)).oldest_program, 0)
    await again.store.close()
  })

  test(`${engine}: opening a database again keeps what is in it`, async (t) => {
    const { world, config } = await openTestWorld(t, engine)
    await world.store.transaction(async (db) => {
      await db
        .insertInto('workspaces')
        .values({ id: 'ws_1', slug: 'kept', name: 'Kept', created_at: 1, provisioned_at: null })
        .execute()
    })
    await world.store.close()
    const again = await openWorld(config, silent, 1_000)
    assert.equal(
      (await again.store.db.selectFrom('workspaces').select('slug').executeTakeFirst())?.slug,
      'kept',
    )
    await again.store.close()
  })

  test(`${engine}: six processes that start at once on an empty database all succeed`, async (t) => {
    const database = await createDatabase(t, engine)
    const runs = Array.from({ length: 6 }, (_, index) =>
      startProcess(t, ['admin', 'workspace', 'create', `w${index}`, '--json'], {
        ADIT_DATABASE_URL: database,
      }),
    )
    const ended = await Promise.all(runs.map((run) => run.ended))
    assert.deepEqual(
      ended.map(({ code, stderr }) => [code, stderr]),
      runs.map(() => [0, '']),
    )
    const list = await startProcess(t, ['admin', 'workspace', 'list', '--json'], {
      ADIT_DATABASE_URL: database,
    }).ended
    assert.deepEqual(
      JSON.parse(list.stdout).map((workspace: { slug: string }) => workspace.slug),
      ['w0', 'w1', 'w2', 'w3', 'w4', 'w5'],
    )
  })
}

test('sqlite: write-ahead log, full synchronisation and foreign keys are on', async (t) => {
  const { world } = await openTestWorld(t, 'sqlite')
  const { sql } = await import('kysely')
  const pragma = async (name: string) =>
    Object.values(
      (await world.store.transaction((db) => sql.raw<object>(`pragma ${name}`).execute(db))).rows[0] ?? {},
    )[0]
  assert.equal(await pragma('journal_mode'), 'wal')
  assert.equal(await pragma('synchronous'), 2)
  assert.equal(await pragma('foreign_keys'), 1)
  const insertion = world.store.transaction((db) =>
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
  await assert.rejects(world.store.db.deleteFrom('api_keys').execute(), /readonly/)
  await world.store.close()
})

test('sqlite: what is no database, or cannot be one, is refused in plain words', async (t) => {
  const file = join(createFolder(t), 'notes.txt')
  writeFileSync(file, 'This is a text of some length, and certainly no database.'.repeat(40))
  for (const [url, words] of [
    [`sqlite:${file}`, /not a database/],
    [`sqlite:${file}/adit.db`, /ENOTDIR|EEXIST/],
  ] as const) {
    const config = readConfig({ ADIT_DATABASE_URL: url })
    await assert.rejects(async () => openWorld(config, silent, 100), words)
  }
})
