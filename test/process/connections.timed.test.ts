// Connections to PostgreSQL that are killed, all blocked, or dead.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { populate, startClients } from '../support/api/clients.ts'
import { caller } from '../support/api/server.ts'
import { connectPostgres, createDatabase } from '../support/databases/create.ts'
import { startRelay } from '../support/network/relay.ts'
import { startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'

const KILLS = 4
const CLIENTS = 6

test('connections killed under load cause few 503, for at most 2 s, no loss and no duplicates', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const env = { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' }
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets, CLIENTS)
  const killer = await connectPostgres(t, database)
  for (let kill = 0; kill < KILLS; kill++) {
    const before = clients.ledger.created.size
    await until('the clients make progress', () => clients.ledger.created.size >= before + 2 * CLIENTS)
    const { rowCount } = await killer.query(
      'select pg_terminate_backend(pid) from pg_stat_activity ' +
        "where application_name like 'adit%' and datname = current_database()",
    )
    // At least one: others may be reconnecting at this moment.
    assert.ok((rowCount ?? 0) >= 1)
  }
  await clients.assertRecovered(t, performance.now())
  assert.ok(clients.unavailable.length < KILLS * CLIENTS * 3, `${clients.unavailable.length} times 503`)
  await clients.assertExact(database)
  assert.equal(node.child.exitCode, null)
})

test('while all connections wait for a lock requests get 503, and within 2 s of its release 200', async (t) => {
  const database = await createDatabase(t, 'postgres')
  const secrets = await populate(database)
  const node = await startServing(t, { ADIT_DATABASE_URL: database, ADIT_LOG_LEVEL: 'silent' })
  const call = caller(node.api, secrets.key)
  const edge = caller(`${node.url}/edge/v1`, secrets.edge)
  const verify = () => edge('POST', '/keys/verify', { json: { key: secrets.key } })
  assert.equal((await verify()).status, 200)
  const watcher = await connectPostgres(t, database)
  const holder = await connectPostgres(t, database)
  await holder.query('begin; lock table usage_days in access exclusive mode')
  const waiting = Promise.all(Array.from({ length: 20 }, () => call('GET', '/usage')))
  const blocked =
    "select 1 from pg_stat_activity where wait_event_type = 'Lock' and datname = current_database()"
  await until('all of its connections wait', async () => (await watcher.query(blocked)).rowCount === 10)
  const startedAt = performance.now()
  const elapsedMs = () => Math.round(performance.now() - startedAt)
  const others = Promise.all([call('POST', '/tokens'), call('GET', '/tokens')])
  // Cached responses need no connection.
  const cached = [await verify(), await call('GET', '/workspace')]
  for (const { status } of [...cached, await fetch(`${node.url}/healthz`)]) assert.equal(status, 200)
  assert.ok(elapsedMs() < 2_000, `served from the cache after ${elapsedMs()} ms`)
  for (const { status } of await others) assert.equal(status, 503)
  const ms = elapsedMs()
  assert.ok(ms < 5_000, `503 after ${ms} ms`)
  await holder.query('rollback')
  const back = performance.now()
  await until('service', async () => (await call('POST', '/tokens')).status === 201, 2_000)
  const statuses = (await waiting).map(({ status }) => status)
  assert.ok(statuses.every((status) => status === 200 || status === 503))
  const after = await Promise.all(Array.from({ length: 20 }, () => call('GET', '/usage')))
  for (const { status } of after) assert.equal(status, 200)
  t.diagnostic(`503 after ${ms} ms, served again within ${Math.round(performance.now() - back)} ms`)
})

test('connections that go dead without being closed are replaced within 2 s', async (t) => {
  const direct = await createDatabase(t, 'postgres')
  const secrets = await populate(direct)
  const relay = await startRelay(t, direct)
  const database = new URL(direct)
  database.port = relay.port
  const env = { ADIT_DATABASE_URL: database.href, ADIT_LOG_LEVEL: 'silent' }
  const node = await startServing(t, env)
  const clients = startClients([node.url], secrets, CLIENTS)
  await clients.areRunning()
  await clients.assertServing()
  relay.blackhole()
  await clients.assertRecovered(t, performance.now())
  assert.ok(clients.slowestMs < 8_000, `a response took ${clients.slowestMs} ms`)
  await clients.assertExact(direct)
})
