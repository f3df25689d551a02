// `adit admin retention`, and what a server logs when it deletes.
import assert from 'node:assert/strict'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import type { Test } from '../../support/cleanup.ts'
import { createMigratedDatabase } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { run } from '../../support/processes/process.ts'

const DAY = 86_400_000

/** A database with rows past their retention. */
async function setUp(t: Test) {
  const database = await createMigratedDatabase(t, 'sqlite')
  const now = Date.now()
  const oldest = now - 3 * DAY
  const oldDay = now - (now % DAY) - 50 * DAY
  const sqlite = new DatabaseSync(database.slice('sqlite:'.length))
  sqlite.exec(`
    insert into workspaces (id, slug, name, created_at) values ('ws_1', 'acme', 'Acme', 1);
    insert into verifications (id, value, expires_at)
      values ('a', '', ${oldest}), ('b', '', ${now - 1_000}), ('c', '', ${now + DAY});
    insert into usage_counters values ('ws_1', ${oldDay}, 'e', 'p', 1, 1, 1, 1, null);
    insert into usage_days (workspace_id, day, requests) values ('ws_1', ${oldDay}, 1);
    insert into audit_log (id, workspace_id, at, actor_kind, actor_id, action, target_id)
      values ('aud_0', 'ws_1', 5, 'operator', 'x', 'x', 'x')`)
  const count = (table: string) => sqlite.prepare(`select count(*) as rows from ${table}`).get()?.rows
  const adit = async (args: string[], env = {}) => {
    const { code, stdout, stderr } = await run(t, ['admin', 'retention', ...args], {
      ADIT_DATABASE_URL: database,
      ...env,
    })
    return { code, stdout, stderr }
  }
  return { adit, count, sqlite, oldest, oldDay }
}

test('admin retention --dry-run shows rows and the oldest of each table, and deletes nothing', async (t) => {
  const { adit, count, sqlite, oldest, oldDay } = await setUp(t)
  const { stdout } = await adit(['--dry-run', '--json'])
  const found = JSON.parse(stdout).filter(({ rows }: { rows: number }) => rows > 0)
  assert.deepEqual(found, [
    { table: 'verifications', rows: 2, oldest: new Date(oldest).toISOString() },
    { table: 'usage_counters', rows: 1, oldest: new Date(oldDay).toISOString() },
  ])
  const table = await adit(['--dry-run'], { ADIT_AUDIT_RETENTION_DAYS: '30' })
  assert.match(table.stdout, /TABLE +ROWS +OLDEST\n(.*\n)*audit_log +1 +1970-01-01T00:00:00.005Z\n/)
  assert.match((await adit(['--dry-run'])).stderr, /audit_log is kept: ADIT_AUDIT_RETENTION_DAYS is not set/)
  assert.deepEqual([count('verifications'), count('usage_counters'), count('audit_log')], [3, 1, 1])
  sqlite.close()
})

test('admin retention deletes now, unless another run is in progress', async (t) => {
  const { adit, count, sqlite } = await setUp(t)
  sqlite.exec(`update maintenance set owner = 'node_1', due_at = ${Date.now() + 60_000}`)
  const busy = await adit([])
  assert.deepEqual(
    [busy.code, /node_1, a server or another command, is deleting now/.test(busy.stderr)],
    [1, true],
  )
  sqlite.exec(`update maintenance set owner = ''`)

  const settings = { ADIT_AUDIT_RETENTION_DAYS: '30' }
  const tablesIn = (json: string) => pluck(JSON.parse(json), 'table')
  const preview = await adit(['--dry-run', '--json'], settings)
  const { code, stdout } = await adit(['--json'], settings)
  assert.equal(code, 0)
  assert.deepEqual(tablesIn(stdout), tablesIn(preview.stdout))
  assert.deepEqual(tablesIn((await adit(['--json'], settings)).stdout), tablesIn(stdout))
  const deleted = JSON.parse(stdout).filter(({ rows }: { rows: number }) => rows > 0)
  assert.deepEqual(deleted, [
    { table: 'verifications', rows: 2 },
    { table: 'audit_log', rows: 1 },
    { table: 'usage_counters', rows: 1 },
  ])
  assert.deepEqual([count('verifications'), count('usage_counters'), count('usage_days')], [1, 0, 1])
  sqlite.close()
})
