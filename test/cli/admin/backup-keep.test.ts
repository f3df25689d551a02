// `adit admin backup --keep`: scheduled backups to a folder.
import assert from 'node:assert/strict'
import {
  copyFileSync,
  lutimesSync,
  readdirSync,
  renameSync,
  symlinkSync,
  utimesSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { scrape } from '../../support/api/metrics.ts'
import { serve } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase, createFolder } from '../../support/databases/create.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'
import { run } from '../../support/processes/process.ts'

async function setUp(t: Test) {
  const { env, adit: admin } = await createOperator(t)
  const adit = (...args: string[]) => admin('backup', ...args)
  return { env, adit, folder: createFolder(t), path: env.ADIT_DATABASE_URL.slice('sqlite:'.length) }
}

/** The name of a backup that was made on a day of January. */
const name = (day: number) => `adit-2026-01-${String(day).padStart(2, '0')}T03-00-00.000Z.db`

test('--keep keeps the newest backups of this database, and deletes nothing else', async (t) => {
  const { adit, folder } = await setUp(t)
  const other = await setUp(t)
  const first = JSON.parse((await adit('--keep', '3', folder, '--json')).stdout)
  assert.match(first.file, /adit-\d{4}-\d\d-\d\dT\d\d-\d\d-\d\d\.\d{3}Z\.db$/)
  assert.deepEqual(Object.keys(first), ['file', 'asOf', 'bytes', 'schema', 'deleted'])
  assert.deepEqual(first.deleted, [])
  for (const day of [1, 2, 3, 4]) copyFileSync(first.file, join(folder, name(day)))
  // A backup of another database, an incomplete one, one that the command did not name, and a link.
  const foreign = JSON.parse((await other.adit('--keep', '1', other.folder, '--json')).stdout)
  copyFileSync(foreign.file, join(folder, name(5)))
  writeFileSync(join(folder, name(6)), 'notes')
  copyFileSync(first.file, join(folder, 'adit-2026-01-07.db'))
  symlinkSync(join(folder, name(4)), join(folder, name(8)))
  renameSync(first.file, join(folder, name(9)))
  const untouched = [name(5), name(6), 'adit-2026-01-07.db', name(8)]

  const second = await adit('--keep', '3', folder)
  assert.match(second.stdout, /Wrote .*Z\.db with everything that was committed by .*\. Deleted 3 older\.\n$/)
  const newest = second.stdout.match(/adit-[\dTZ.-]+\.db/)?.[0] as string
  assert.deepEqual(readdirSync(folder).sort(), [...untouched, name(4), name(9), newest].sort())
  assert.equal((await adit('verify', join(folder, newest))).code, 0)
})

test('--keep keeps the backup that it has just made, whatever other names say', async (t) => {
  const { adit, folder } = await setUp(t)
  const { file } = JSON.parse((await adit('--keep', '2', folder, '--json')).stdout)
  // A clock was wrong.
  const future = ['adit-2095-01-01T03-00-00.000Z.db', 'adit-2096-01-01T03-00-00.000Z.db']
  for (const each of [...future, name(1)]) copyFileSync(file, join(folder, each))
  const second = JSON.parse((await adit('--keep', '2', folder, '--json')).stdout)
  assert.deepEqual(second.deleted, [join(folder, name(1))])
  const expected = [basename(file), basename(second.file), ...future]
  assert.deepEqual(readdirSync(folder).sort(), expected.sort())
})

test('--keep deletes what a killed backup left, once it is a day old', async (t) => {
  const { adit, folder } = await setUp(t)
  const draft = (day: number) => `${name(day)}.0123456789ab.part`
  const old = [draft(1), `${draft(1)}-journal`]
  // Recent, and names that a backup does not have.
  const others = [draft(2), 'notes.0123456789ab.part', `${name(3)}.part`]
  const twoDaysAgo = Date.now() / 1_000 - 2 * 86_400
  for (const each of [...old, ...others]) {
    writeFileSync(join(folder, each), 'incomplete')
    if (each !== draft(2)) utimesSync(join(folder, each), twoDaysAgo, twoDaysAgo)
  }
  symlinkSync('nowhere', join(folder, draft(4)))
  lutimesSync(join(folder, draft(4)), twoDaysAgo, twoDaysAgo)
  const { file, deleted } = JSON.parse((await adit('--keep', '1', folder, '--json')).stdout)
  assert.deepEqual(deleted, [], 'they are no backups')
  assert.deepEqual(readdirSync(folder).sort(), [...others, draft(4), basename(file)].sort())
})

test('a failed backup with --keep deletes nothing, and is not recorded', async (t) => {
  const { env, adit, folder, path } = await setUp(t)
  const { file } = JSON.parse((await adit('--keep', '1', folder, '--json')).stdout)
  for (const day of [1, 2]) copyFileSync(file, join(folder, name(day)))
  const recorded = () => {
    const database = new DatabaseSync(path)
    const row = database.prepare('select backed_up_at as at from maintenance').get()
    database.close()
    return row?.at
  }
  const before = recorded()
  assert.equal(typeof before, 'number')
  const database = new DatabaseSync(path)
  database.exec('alter table schema_version rename to renamed')
  assertFailed(await adit('--keep', '1', folder), 1, /Not an Adit database/)
  database.exec('alter table renamed rename to schema_version')
  database.close()
  assert.equal(readdirSync(folder).length, 3)
  assert.equal(recorded(), before)

  const none = join(folder, 'none')
  for (const [args, code, message] of [
    [['--keep', '0', folder], 2, /--keep must be a whole number from 1 to 10000\./],
    [['--keep', 'all', folder], 2, /--keep must be a whole number/],
    [['--keep', '1', none], 1, /The directory .*none does not exist\. Create it first\./],
    [['--keep', '1', file], 1, /The directory .*\.db does not exist\./],
  ] as const) {
    const result = await adit(...args)
    assert.equal(result.code, code)
    assert.match(result.stderr, message)
  }
  const postgres = { ...env, ADIT_DATABASE_URL: await createDatabase(t, 'postgres') }
  assert.match((await run(t, ['admin', 'backup', '--keep', '1', folder], postgres)).stderr, /pg_dump/)
  assert.equal(readdirSync(folder).length, 3)
})

test('a server reports the time of the last scheduled backup, and nothing without one', async (t) => {
  const { env, adit, folder } = await setUp(t)
  const { metricsUrl } = await serve(t, { engine: 'sqlite', env: { ...env, ADIT_METRICS_PORT: '0' } })
  const read = async () => (await scrape(metricsUrl)).get('adit_backup_timestamp_seconds')
  await adit(join(folder, 'once.db'))
  assert.equal(await read(), undefined, 'a single backup is not a schedule')
  const { asOf } = JSON.parse((await adit('--keep', '7', folder, '--json')).stdout)
  assert.equal(await read(), Date.parse(asOf) / 1_000)
})
