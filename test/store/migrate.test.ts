import assert from 'node:assert/strict'
import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { openWorld } from '../../src/world.ts'
import { createDatabase, createFolder, engines } from '../support/databases.ts'
import { startProcess } from '../support/process.ts'
import { openTestWorld } from '../support/server.ts'

const log = createLog('silent')

for (const engine of engines) {
  test(`${engine}: a database newer than the program is refused with a line that says what to do`, async (t) => {
    const { world, config } = await openTestWorld(t, engine)
    await world.store.transaction(async (db) => {
      await db.updateTable('schema_version').set({ version: 999 }).execute()
    })
    await world.store.close()
    await assert.rejects(
      openWorld(config, log, 1_000),
      /schema 999, this adit knows schemas up to \d+\. Run the newer/,
    )
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
    const again = await openWorld(config, log, 1_000)
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
    await assert.rejects(async () => openWorld(config, log, 100), words)
  }
})
