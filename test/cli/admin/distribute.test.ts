// `adit admin distribute` without Citus. With it: test/citus/.
import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { placements } from '../../../src/server/store/engine/postgres/citus.ts'
import { query } from '../../support/databases/client.ts'
import { createDatabase, createFolder, createMigratedDatabase } from '../../support/databases/create.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { run } from '../../support/processes/process.ts'

test('every table of the schema is placed, and no other', async (t) => {
  const database = await createMigratedDatabase(t, 'postgres')
  const rows = await query(database, "select tablename from pg_tables where schemaname = 'public'")
  assert.deepEqual(Object.keys(placements).toSorted(), rows.map(({ tablename }) => tablename).sort())
})

test('without the extension, and on SQLite, the error is one line', async (t) => {
  const postgres = await createDatabase(t, 'postgres')
  const file = join(createFolder(t), 'data', 'adit.db')
  for (const [database, message] of [
    [
      postgres,
      /^adit: The citus extension is not available on this PostgreSQL server\. Install it on every machine\.\n$/,
    ],
    [`sqlite:${file}`, /^adit: SQLite cannot be distributed\. Set ADIT_DATABASE_URL to a PostgreSQL .*\.\n$/],
  ] as const) {
    assertFailed(await run(t, ['admin', 'distribute'], { ADIT_DATABASE_URL: database }), 1, message)
  }
  assert.ok(!existsSync(file), 'a database was created')
})
