// Point-in-time recovery of PostgreSQL as docs/operations/backup.md describes it: a base backup, archived
// write-ahead log, and a mistake. Needs pg_basebackup, which the PostgreSQL from npm lacks.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { appendFileSync, chmodSync, chownSync, globSync, mkdirSync, writeFileSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { openChangeStream, readPosition } from '../../support/api/change-stream.ts'
import { caller } from '../../support/api/server.ts'
import { atEnd, type Test } from '../../support/cleanup.ts'
import { query } from '../../support/databases/client.ts'
import { createFolder } from '../../support/databases/create.ts'
import { freePort } from '../../support/processes/ports.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

const programs = globSync('/usr/lib/postgresql/*/bin/pg_basebackup').map(dirname).sort().at(-1)
const skip = programs === undefined && 'pg_basebackup is not installed (apt-get install postgresql)'

const isRoot = process.getuid?.() === 0
const readId = (flag: string) => Number(execFileSync('id', [flag, 'nobody'], { encoding: 'utf8' }))
/** PostgreSQL does not run as root. */
const identity = isRoot ? { uid: readId('-u'), gid: readId('-g') } : {}

function setUp(t: Test) {
  const folder = createFolder(t)
  chmodSync(folder, 0o755)
  const createPart = (name: string) => {
    const path = join(folder, name)
    mkdirSync(path, { mode: 0o700 })
    if (isRoot) chownSync(path, identity.uid as number, identity.gid as number)
    return path
  }
  const command = (name: string, ...args: string[]) =>
    execFileSync(join(programs as string, name), args, { ...identity, cwd: folder, stdio: 'ignore' })

  /** Starts PostgreSQL, and returns the URL of its database once it accepts writes. */
  async function start(data: string, settings: string[] = []): Promise<string> {
    const port = await freePort()
    const all = ['listen_addresses=127.0.0.1', 'unix_socket_directories=', 'fsync=off', ...settings]
    const flags = ['-D', data, '-p', String(port), ...all.flatMap((each) => ['-c', each])]
    const options = { ...identity, cwd: folder, stdio: 'ignore' } as const
    const server = spawn(join(programs as string, 'postgres'), flags, options)
    const exited = once(server, 'exit')
    atEnd(t, async () => {
      server.kill('SIGQUIT')
      await exited
    })
    const url = `postgres://adit@127.0.0.1:${port}/postgres`
    await until('PostgreSQL accepts writes', async () => {
      const rows = await query(url, 'select pg_is_in_recovery() as recovering').catch(() => [])
      return rows[0]?.recovering === false
    })
    return url
  }
  return { createPart, command, start }
}

test('a PostgreSQL database is recovered to a time before a mistake, and keys revoked since then stay revoked', {
  skip,
}, async (t) => {
  const { createPart, command, start } = setUp(t)
  const [data, archive, base] = [createPart('data'), createPart('archive'), createPart('base')]
  command('initdb', '-D', data, '-U', 'adit', '-A', 'trust', '-E', 'UTF8', '--no-sync')
  const copy = `test ! -f ${archive}/%f && cp %p ${archive}/%f`
  const old = await start(data, ['archive_mode=on', `archive_command=${copy}`])
  const env = { ADIT_DATABASE_URL: old, ADIT_LOG_LEVEL: 'silent' }
  const adit = async (database: string, ...args: string[]) => {
    const { code, stdout, stderr } = await run(t, ['admin', ...args, '--json'], {
      ADIT_DATABASE_URL: database,
    })
    assert.equal(code, 0, stderr)
    return JSON.parse(stdout)
  }

  await adit(old, 'migrate')
  await adit(old, 'workspace', 'create', 'acme')
  const key = await adit(old, 'key', 'create', '--workspace', 'acme')
  const first = await startServing(t, env)
  const call = caller(first.api, key.token)
  const createKey = async () => (await call('POST', '/tokens')).json
  const revoke = (id: string) => call('DELETE', `/tokens/${id}`)
  const [early, leaked] = [await createKey(), await createKey()]
  const edge = await adit(old, 'edge', 'create', 'fra-1')
  await query(old, 'create role replicator login replication')
  const replicator = old.replace('adit@', 'replicator@').replace('/postgres', '')
  // With this setting of the old server, commits would wait for its standby: recovery has to override it.
  await query(old, "alter system set synchronous_standby_names = 'b'")
  command('pg_basebackup', '--checkpoint=fast', `--dbname=${replicator}`, `--pgdata=${base}`)

  const later = await createKey()
  await revoke(early.id)
  await adit(old, 'demo', '--workspace', 'acme')
  const [{ time }] = await query(old, 'select clock_timestamp()::text as time')
  const lost = await createKey()
  for (const { id } of [leaked, lost]) await revoke(id)
  await query(old, 'delete from usage_days')
  const seen = await readPosition(first.url, edge.token)
  await first.stop()
  const [{ segment }] = await query(old, 'select pg_walfile_name(pg_switch_wal()) as segment')
  await until('the log is archived', async () => {
    const [{ last }] = await query(old, 'select last_archived_wal as last from pg_stat_archiver')
    return last >= segment
  })

  const settings = [
    `restore_command = 'cp ${archive}/%f %p'`,
    `recovery_target_time = '${time}'`,
    `recovery_target_action = 'promote'`,
    `synchronous_standby_names = ''`,
    'archive_mode = off',
  ]
  appendFileSync(join(base, 'postgresql.auto.conf'), `${settings.join('\n')}\n`)
  writeFileSync(join(base, 'recovery.signal'), '')
  const recovered = await start(base)
  await query(
    recovered,
    `begin; delete from change_log; delete from nodes;
     update change_log_head set sequence = sequence + 1000000000; commit`,
  )
  assert.deepEqual(await adit(recovered, 'revoke-again', old), [
    { kind: 'key', revoked: 1, alreadyRevoked: 1, missing: 1 },
    { kind: 'edge', revoked: 0, alreadyRevoked: 0, missing: 0 },
    { kind: 'user', revoked: 0, alreadyRevoked: 0, missing: 0 },
  ])

  const second = await startServing(t, { ...env, ADIT_DATABASE_URL: recovered })
  for (const [{ token }, status] of [
    [key, 200],
    [later, 200],
    [early, 401],
    [leaked, 401],
    [lost, 401],
  ] as const)
    assert.equal((await caller(second.api, token)('GET', '/workspace')).status, status)
  assert.deepEqual(await query(recovered, 'select count(*)::int as days from usage_days'), [{ days: 365 }])
  const stream = await openChangeStream(second.url, edge.token, { 'last-event-id': seen })
  assert.match(await stream.next(/\n\n.*\n\n/s), /^event: reset\n/)
})
