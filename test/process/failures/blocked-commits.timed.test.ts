// Synchronous replication without a standby: PostgreSQL serves reads, and commits wait for a standby.
import assert from 'node:assert/strict'
import { type TestContext, test } from 'node:test'
import { setTimeout as sleep } from 'node:timers/promises'
import { sql } from 'kysely'
import pg from 'pg'
import { CommitsBlocked, CommitUnconfirmed } from '../../../src/server/store/engine/errors.ts'
import { openStore } from '../../../src/server/store/engine/store.ts'
import { populate } from '../../support/api/clients.ts'
import { scrape } from '../../support/api/metrics.ts'
import { caller, type TestResponse } from '../../support/api/server.ts'
import { atEnd } from '../../support/cleanup.ts'
import { query } from '../../support/databases/client.ts'
import { createCluster } from '../../support/databases/postgres.ts'
import { run, startServing } from '../../support/processes/process.ts'
import { until } from '../../support/until.ts'

/** The documented 5 s, and what a busy machine adds. */
const WRITE_MAX_MS = 6_000
/** By then the node knows that commits hang: the documented 2.5 s, and what a busy machine adds. */
const DETECTED_WITHIN_MS = 3_500
const QUICK_MS = 1_000
/** Per node: seven writers, the probe and the control connection. */
const WAITING_SESSIONS_MAX = 9
/** For a node that gets no writes. */
const WAITING_SESSIONS_MAX_IDLE = 5

interface Timed extends TestResponse {
  ms: number
}

async function timed(call: Promise<TestResponse>): Promise<Timed> {
  const startedAt = performance.now()
  return { ...(await call), ms: performance.now() - startedAt }
}

/** A node with keys that it has not cached, on a primary with one synchronous standby. */
async function startNode(t: TestContext, synchronousCommit = 'on') {
  const primary = await createCluster(['fsync=off', `synchronous_commit=${synchronousCommit}`])
  atEnd(t, () => primary.remove())
  await primary.start()
  const database = `${primary.url}/postgres`
  const { key } = await populate(database)
  const standby = await primary.standby()
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent', ADIT_METRICS_PORT: '0' }
  const node = await startServing(t, env)
  const call = caller(`${node.url}/api/v1`, key)
  const create = (callerKey = key) => call('POST', '/tokens', { key: callerKey, json: {} })
  const keys: { id: string; token: string }[] = []
  while (keys.length < 60) keys.push((await create()).json)
  const session = new pg.Client(database)
  await session.connect()
  atEnd(t, () => session.end())
  /** Sessions that wait for the standby. */
  const waiting = async () => {
    const { rows } = await session.query("select pid from pg_stat_activity where wait_event = 'SyncRep'")
    return rows.map(({ pid }) => pid as number)
  }
  /** The probes among them. */
  const probes = async () => {
    const { rows } = await session.query(`select pid from pg_stat_activity
      where wait_event = 'SyncRep' and application_name = 'adit commit probe'`)
    return rows.map(({ pid }) => pid as number)
  }
  const readiness = async (url = node.url) =>
    (await fetch(`${url}/readyz`)).json() as Promise<{ degraded?: string }>
  return { env, standby, node, call, create, keys, session, waiting, probes, readiness }
}

function openDatabase(t: TestContext, url: string) {
  const ignore = () => {}
  const events = { onLostConnection: ignore, onStorageFault: ignore, onStorageRecovered: ignore }
  const store = openStore({ engine: 'postgres', url }, events)
  atEnd(t, () => store.close())
  return store
}

async function startWithoutStandby(t: TestContext) {
  const started = await startNode(t)
  await started.standby.stop('kill')
  return started
}

test('while no standby confirms commits, reads go on, writes fail within 5 s, and later ones at once', async (t) => {
  const { env, standby, node, call, create, keys, waiting, readiness } = await startWithoutStandby(t)
  const startedAt = performance.now()
  // A key that has not been used yet: no blocked transaction has locked its row.
  const first = timed(create(keys.pop()?.token))
  await until('its commit waits', async () => (await waiting()).length > 0)
  const revoke = () => call('DELETE', `/tokens/${keys.pop()?.id}`)
  const writes = Promise.all(
    Array.from({ length: 30 }, (_, index) => timed(index % 3 === 0 ? create() : revoke())),
  )
  const assertReads = async () => {
    const uncached = keys.pop()?.token as string
    for (const read of [timed(call('GET', '/workspace', { key: uncached })), timed(call('GET', '/usage'))]) {
      const { status, text, ms } = await read
      assert.ok(status === 200 && ms < QUICK_MS, `${status} after ${Math.round(ms)} ms: ${text}`)
    }
  }
  while (performance.now() - startedAt < DETECTED_WITHIN_MS) {
    await assertReads()
    await sleep(250)
  }
  assert.match((await readiness()).degraded ?? '', /does not confirm commits/)
  assert.equal((await fetch(`${node.url}/readyz`)).status, 200)
  assert.match((await scrape(node.metrics)).text, /^adit_commits_blocked 1$/m)
  for (let attempt = 1; attempt <= 20; attempt++) {
    const { status, headers, json, ms } = await timed(attempt % 2 === 0 ? create() : revoke())
    assert.equal(status, 503)
    assert.ok(Number(headers.get('retry-after')) > 0)
    assert.match(json.message, /Nothing was changed/)
    assert.ok(ms < QUICK_MS, `a write waited for ${ms} ms although commits are known to hang`)
  }
  await assertReads()
  const command = await run(t, ['admin', 'workspace', 'create', 'second'], env)
  assert.equal(command.code, 1)
  assert.match(command.stderr, /may still take effect\. .*`adit admin doctor` checks the database\.\n$/)
  assert.match((await run(t, ['admin', 'doctor'], env)).stdout, /No synchronous standby is connected/)
  for (const { status, headers, text, ms } of [await first, ...(await writes)]) {
    assert.equal(status, 503, text)
    assert.ok(Number(headers.get('retry-after')) > 0)
    assert.ok(ms < WRITE_MAX_MS, `a write took ${ms} ms`)
  }
  assert.match((await first).json.message, /may still take effect/)
  const sessions = await waiting()
  assert.ok(sessions.length <= WAITING_SESSIONS_MAX, `${sessions.length} sessions wait for the standby`)
  await standby.start()
  await until('no session waits', async () => (await waiting()).length === 0)
  await until('a write succeeds', async () => (await create()).status === 201, 1_500)
  assert.equal((await readiness()).degraded, undefined)
  const onStandby = await run(t, ['admin', 'nodes'], { ADIT_DATABASE_URL: `${standby.url}/postgres` })
  assert.match(onStandby.stderr, /Promote it, or name the primary in ADIT_DATABASE_URL\.\n$/)
  const { stdout } = await run(t, ['admin', 'doctor'], env)
  assert.match(stdout, /Synchronous standbys that are connected: 1/)
  assert.match(stdout, /Nodes cannot tell a dead standby from a promoted one/)
  assert.match((await scrape(node.metrics)).text, /^adit_commits_blocked 0$/m)
})

test('a write whose wait for the standby is canceled is not acknowledged', async (t) => {
  const { create, session, waiting } = await startWithoutStandby(t)
  const write = create()
  await until('the commit waits', async () => (await waiting()).length > 0)
  for (const pid of await waiting()) await session.query('select pg_cancel_backend($1)', [pid])
  const { status, json } = await write
  assert.equal(status, 503)
  assert.match(json.message, /may still take effect/)
})

test('a probe whose wait is canceled confirms nothing: writes stay blocked', async (t) => {
  const { env, create, session, probes, readiness } = await startWithoutStandby(t)
  const write = create()
  await until('the node knows that commits hang', async () => (await readiness()).degraded)
  assert.equal((await write).status, 503)
  for (let round = 1; round <= 3; round++) {
    await until('a probe waits', async () => (await probes()).length === 1)
    await session.query('select pg_cancel_backend($1)', await probes())
    const { status, json } = await create()
    assert.equal(status, 503)
    assert.match(json.message, /Nothing was changed/)
    assert.ok((await readiness()).degraded)
  }
  const store = openDatabase(t, env.ADIT_DATABASE_URL)
  await until('the probe of the node waits', async () => (await probes()).length === 1)
  const confirmed = assert.rejects(store.confirmCommit(), /canceled/, 'strict fencing would count it')
  await until('another one waits', async () => (await probes()).length === 2)
  for (const pid of await probes()) await session.query('select pg_cancel_backend($1)', [pid])
  await confirmed
})

test('a transaction that gets its connection after commits were found to hang does not begin', async (t) => {
  const { env, node, waiting, probes } = await startWithoutStandby(t)
  node.child.kill('SIGKILL')
  const store = openDatabase(t, env.ADIT_DATABASE_URL)
  const write = () =>
    store.transaction((tx) => sql`select pg_logical_emit_message(true, 'test', '')`.execute(tx))
  const first = assert.rejects(write(), CommitUnconfirmed)
  await until('a probe waits', async () => (await probes()).length > 0)
  const before = (await waiting()).length
  const reads = Array.from({ length: 9 }, () => sql`select pg_sleep(2)`.execute(store.db))
  await assert.rejects(write(), CommitsBlocked)
  assert.equal((await waiting()).length, before)
  await Promise.all([first, ...reads])
})

test('commits that wait for a standby to apply them are noticed too', async (t) => {
  const { standby, create, readiness } = await startNode(t, 'remote_apply')
  await query(`${standby.url}/postgres`, 'select pg_wal_replay_pause()')
  const write = create()
  await until('the node knows that commits hang', async () => (await readiness()).degraded, 4_000)
  assert.equal((await write).status, 503)
  await query(`${standby.url}/postgres`, 'select pg_wal_replay_resume()')
  await until('writes are accepted', async () => (await create()).status === 201, 3_000)
})

test('a node that starts while no standby confirms commits verifies keys, and few sessions wait', async (t) => {
  const { env, node, keys, session, waiting, readiness } = await startWithoutStandby(t)
  node.child.kill('SIGKILL')
  const { url } = await startServing(t, env)
  await until('it reports the state', async () => (await readiness(url)).degraded)
  // Each attempt to register would leave a session behind.
  await sleep(3_000)
  const { status } = await caller(`${url}/api/v1`, keys[0]?.token as string)('GET', '/workspace')
  assert.equal(status, 200)
  const sessions = await waiting()
  assert.ok(sessions.length <= WAITING_SESSIONS_MAX_IDLE, `${sessions.length} sessions wait for the standby`)
  await session.query("alter system set synchronous_standby_names = ''")
  await session.query('select pg_reload_conf()')
  await until('writes are accepted', async () => !(await readiness(url)).degraded, 3_000)
})
