// `adit admin backup`, and restoring as docs/operations/backup.md describes: real processes.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import {
  copyFileSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  renameSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { basename, join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { backUpSqlite } from '../../../src/server/store/maintenance/backup.ts'
import { openChangeStream, readPosition } from '../../support/api/change-stream.ts'
import { caller } from '../../support/api/server.ts'
import type { Test } from '../../support/cleanup.ts'
import { createDatabase, createFolder } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { root, run, startProcess, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

/** A folder for the database and its backup, and commands that act on the database. */
function setUp(t: Test) {
  const folder = createFolder(t)
  const path = join(folder, 'data', 'adit.db')
  const env = { ADIT_DATABASE_URL: `sqlite:${path}`, ADIT_LOG_LEVEL: 'silent' }
  const json = async (...args: string[]) => {
    const { code, stdout, stderr } = await run(t, [...args, '--json'], env)
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }
  return { folder, path, env, json, backup: join(folder, 'backup.db') }
}

async function createWorkspace({ json }: ReturnType<typeof setUp>): Promise<void> {
  await json('admin', 'migrate')
  await json('admin', 'workspace', 'create', 'acme')
}

function addBallast(path: string, megabytes: number): void {
  const database = new DatabaseSync(path, { timeout: 5_000 })
  database.exec('create table ballast (bytes blob)')
  const insert = database.prepare('insert into ballast values (randomblob(1000000))')
  for (let count = 0; count < megabytes; count++) insert.run()
  database.close()
}

async function stop(server: Awaited<ReturnType<typeof startServing>>): Promise<void> {
  assert.equal((await server.stop()).code, 0)
}

/**
 * As docs/operations/backup.md describes: SQLite's other files move with the old database, the secret stays.
 */
function restore({ folder, path, backup }: ReturnType<typeof setUp>): string {
  const old = join(folder, 'old')
  mkdirSync(old)
  for (const name of readdirSync(join(folder, 'data')))
    if (/^adit\.db(-.*)?$/.test(name)) renameSync(join(folder, 'data', name), join(old, name))
  copyFileSync(backup, path)
  return join(old, 'adit.db')
}

test('a backup during writes is consistent, with everything acknowledged before', async (t) => {
  const place = setUp(t)
  const server = await startServing(t, place.env)
  const call = caller(server.api, server.token as string)
  // Large enough that the copy takes many steps, with many writes between them.
  addBallast(place.path, 50)
  const ids: string[] = []
  const createKey = async () => {
    const key = await call('POST', '/tokens')
    assert.equal(key.status, 201)
    ids.push(key.json.id)
  }
  for (let count = 0; count < 20; count++) await createKey()
  const before = ids.length
  let backedUp = false
  const creating = (async () => {
    while (!backedUp) await createKey()
  })()
  const began = new Date().toISOString()
  const backup = await place.json('admin', 'backup', place.backup)
  backedUp = true
  const ended = new Date().toISOString()
  await creating

  assert.deepEqual(Object.keys(backup), ['file', 'asOf', 'bytes', 'schema'])
  assert.equal(backup.file, place.backup)
  assert.match(backup.asOf, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/)
  assert.ok(began <= backup.asOf && backup.asOf < ended, `${began} ≤ ${backup.asOf} < ${ended}`)
  assert.equal(backup.bytes, statSync(place.backup).size)
  assert.equal(statSync(place.backup).mode & 0o777, 0o600)
  assert.deepEqual(readdirSync(place.folder).sort(), ['backup.db', 'data'], 'other files are left')
  const copy = new DatabaseSync(place.backup, { readOnly: true })
  const kept = copy.prepare("select id from api_keys where label = '' order by id").all()
  copy.close()
  assert.ok(kept.length >= before && kept.length < ids.length, `${before} ≤ ${kept.length} < ${ids.length}`)
  assert.deepEqual(pluck(kept, 'id'), ids.slice(0, kept.length))
})

test('a restored backup is complete, its keys work, and edges clear their caches', async (t) => {
  const place = setUp(t)
  const first = await startServing(t, { ...place.env, ADIT_SECRET: '' })
  const key = first.token as string
  const call = caller(first.api, key)
  const kept = (await call('POST', '/tokens')).json
  const gone = (await call('POST', '/tokens')).json
  await call('DELETE', `/tokens/${gone.id}`)
  const edge = await place.json('admin', 'edge', 'create', 'fra-1')
  const secret = readFileSync(`${place.path}.secret`, 'utf8')
  const list = (await call('GET', '/tokens')).json
  const backup = await run(t, ['admin', 'backup', place.backup], place.env)
  assert.equal(backup.code, 0, backup.stderr)
  assert.match(backup.stdout, /^Wrote \S+backup\.db with everything that was committed by \S+Z\.\n$/)
  assert.match(backup.stderr, /Not included: .*adit\.db\.secret, .*Keep a copy/)

  const late = (await call('POST', '/tokens')).json
  for (let count = 0; count < 3; count++)
    await call('DELETE', `/tokens/${(await call('POST', '/tokens')).json.id}`)
  const seen = await readPosition(first.url, edge.token)
  assert.match(seen, /^4-/)
  await stop(first)
  restore(place)

  const second = await startServing(t, { ...place.env, ADIT_SECRET: '' })
  const again = caller(second.api, key)
  assert.equal(second.token, undefined, 'the database is not new')
  const now = (await again('GET', '/tokens')).json
  assert.deepEqual(pluck(now.tokens, 'id', 'revokedAt'), pluck(list.tokens, 'id', 'revokedAt'))
  for (const [token, status] of [
    [kept.token, 200],
    [gone.token, 401],
    [late.token, 401],
  ])
    assert.equal((await again('GET', '/workspace', { key: token })).status, status)
  assert.equal((await again('POST', '/tokens')).status, 201)
  assert.equal(readFileSync(`${place.path}.secret`, 'utf8'), secret)
  // Enough to pass the old sequence again, had it been restored.
  for (let count = 0; count < 4; count++)
    await again('DELETE', `/tokens/${(await again('POST', '/tokens')).json.id}`)
  const stream = await openChangeStream(second.url, edge.token, { 'last-event-id': seen })
  assert.match(await stream.next(/\n\n.*\n\n/s), /^event: reset\n/)
})

test('revoke-again repeats the revocations after a backup, before the restored server starts', async (t) => {
  const place = setUp(t)
  const first = await startServing(t, place.env)
  const call = caller(first.api, first.token as string)
  const createKey = async () => (await call('POST', '/tokens')).json
  const [leaked, earlier, valid] = [await createKey(), await createKey(), await createKey()]
  const lost = await place.json('admin', 'edge', 'create', 'fra-1')
  await call('DELETE', `/tokens/${earlier.id}`)
  await place.json('admin', 'backup', place.backup)
  const late = await createKey()
  for (const { id } of [leaked, late]) await call('DELETE', `/tokens/${id}`)
  await place.json('admin', 'edge', 'revoke', lost.id, '--yes')
  await stop(first)
  const old = restore(place)
  assert.deepEqual(await place.json('admin', 'revoke-again', old), [
    { kind: 'key', revoked: 1, alreadyRevoked: 1, missing: 1 },
    { kind: 'edge', revoked: 1, alreadyRevoked: 0, missing: 0 },
    { kind: 'user', revoked: 0, alreadyRevoked: 0, missing: 0 },
  ])

  const second = await startServing(t, place.env)
  for (const [{ token }, status] of [
    [leaked, 401],
    [valid, 200],
  ] as const)
    assert.equal((await caller(second.api, token)('GET', '/workspace')).status, status)
})

test('a backup overwrites no file and creates no database, and its errors are one line', async (t) => {
  const place = setUp(t)
  const attempt = async (file: string, env: Record<string, string> = place.env) => {
    const { code, stdout, stderr } = await run(t, ['admin', 'backup', file, '--json'], env)
    assert.deepEqual([code, stdout], [1, ''])
    const { error, message } = JSON.parse(stderr)
    assert.equal(error, 'backup')
    return message as string
  }
  assert.match(
    await attempt(place.backup),
    /^Database .*adit\.db does not exist\. Check ADIT_DATABASE_URL\.$/,
  )
  assert.deepEqual(readdirSync(place.folder), [])

  await createWorkspace(place)
  writeFileSync(place.backup, 'mine')
  assert.match(await attempt(place.backup), /backup\.db already exists/)
  assert.equal(readFileSync(place.backup, 'utf8'), 'mine')
  const [none, data] = [join(place.folder, 'none'), join(place.folder, 'data')]
  assert.equal(
    await attempt(join(none, 'backup.db')),
    `The directory ${none} does not exist. Create it first.`,
  )
  assert.equal(await attempt(data), `${data} is a directory; specify a file, or use --keep.`)
  const notes = { ADIT_DATABASE_URL: `sqlite:${place.backup}` }
  assert.match(await attempt(join(place.folder, 'other.db'), notes), /^Not an Adit database/)
  assertFailed(await run(t, ['admin', 'backup'], place.env), 2, /Missing argument <path>/)
  assert.deepEqual(readdirSync(place.folder).sort(), ['backup.db', 'data'])

  const postgres = { ADIT_DATABASE_URL: await createDatabase(t, 'postgres') }
  assert.match(
    await attempt(join(place.folder, 'other.db'), postgres),
    /pg_dump --format=custom --file=<file>/,
  )
})

test('a backup does not migrate the schema, and rejects one from before the first release', async (t) => {
  const place = setUp(t)
  await createWorkspace(place)
  const database = new DatabaseSync(place.path)
  // Version 0 is older than any that a program creates.
  for (const version of [0, 999]) {
    database.exec(`update schema_version set version = ${version}`)
    const file = join(place.folder, `${version}.db`)
    assert.equal((await place.json('admin', 'backup', file)).schema, version)
    assert.equal(database.prepare('select version from schema_version').get()?.version, version)
  }
  database.exec('alter table schema_version rename column min_compatible_version to oldest_program')
  database.close()
  const result = await run(t, ['admin', 'backup', place.backup], place.env)
  assertFailed(result, 1, /^adit: The database was created by an adit from before the first release/m)
  assert.ok(!existsSync(place.backup))
})

test('a corrupt database is not accepted as a backup', async (t) => {
  const place = setUp(t)
  await createWorkspace(place)
  const database = new DatabaseSync(place.path)
  const { rootpage } = database
    .prepare("select rootpage from sqlite_schema where name = 'audit_log_by_workspace'")
    .get() as { rootpage: number }
  database.close()
  const bytes = readFileSync(place.path)
  bytes.fill(0xaa, (rootpage - 1) * 4096 + 4000, rootpage * 4096)
  writeFileSync(place.path, bytes)
  assertFailed(await run(t, ['admin', 'backup', place.backup], place.env), 1, /damaged|malformed/)
  assert.deepEqual(readdirSync(place.folder), ['data'])
})

test('an interrupted backup leaves no file, and a killed one none under its name', async (t) => {
  const place = setUp(t)
  await createWorkspace(place)
  addBallast(place.path, 100)
  const begun = () => readdirSync(place.folder).some((name) => name.startsWith(basename(place.backup)))
  for (const signal of ['SIGINT', 'SIGKILL'] as const) {
    const backup = startProcess(t, ['admin', 'backup', place.backup], place.env)
    await until('the copy has begun', begun)
    backup.child.kill(signal)
    const { code, stderr } = await backup.ended
    if (signal === 'SIGKILL') assert.ok(!existsSync(place.backup))
    else {
      assert.equal(code, 1)
      assert.match(stderr, /Canceled\. The incomplete copy was removed\./)
      assert.deepEqual(readdirSync(place.folder), ['data'])
    }
  }
  await place.json('admin', 'backup', place.backup)
})

test('Ctrl-C while the copy is checked cancels the backup', async (t) => {
  const place = setUp(t)
  await createWorkspace(place)
  const script = `
    import { abortOnSignal } from './src/cli/abort-on-signal.ts'
    import { backUpSqlite } from './src/server/store/maintenance/backup.ts'
    const [path, file] = process.argv.slice(1)
    await backUpSqlite(path, file, {
      clock: Date.now,
      signal: abortOnSignal().signal,
      onStart() {},
      onProgress() {},
      onCheck: () => process.kill(process.pid, 'SIGINT'),
    })`
  const args = ['--input-type=module', '--eval', script, place.path, place.backup]
  const { status, stderr } = spawnSync(process.execPath, args, { cwd: root, encoding: 'utf8' })
  assert.match(stderr, /AbortError/)
  assert.equal(status, 1)
  assert.deepEqual(readdirSync(place.folder), ['data'])
})

test('of two simultaneous backups to one file one succeeds, even with equal process ids', async (t) => {
  const place = setUp(t)
  await createWorkspace(place)
  const { signal } = new AbortController()
  const options = { clock: Date.now, signal, onStart() {}, onProgress() {}, onCheck() {} }
  const results = await Promise.allSettled(
    [options, options].map((each) => backUpSqlite(place.path, place.backup, each)),
  )
  const [reason, ...others] = results.flatMap((result) =>
    result.status === 'rejected' ? [result.reason] : [],
  )
  assert.deepEqual(others, [])
  assert.match(String(reason), /^BackupError: .*backup\.db was created meanwhile\./)
  assert.deepEqual(readdirSync(place.folder).sort(), ['backup.db', 'data'])
})

test('a backup that fails closes its files', async (t) => {
  if (!existsSync('/proc/self/fd')) return t.skip('no /proc')
  const { folder, backup } = setUp(t)
  const other = join(folder, 'other.db')
  new DatabaseSync(other).exec('create table other (id)')
  const { signal } = new AbortController()
  const options = { clock: Date.now, signal, onStart() {}, onProgress() {}, onCheck() {} }
  await assert.rejects(backUpSqlite(other, backup, options), /Not an Adit database/)
  const open = readdirSync('/proc/self/fd').map((name) => {
    try {
      return readlinkSync(`/proc/self/fd/${name}`)
    } catch {
      return ''
    }
  })
  assert.deepEqual(
    open.filter((path) => path.startsWith(backup)),
    [],
  )
})
