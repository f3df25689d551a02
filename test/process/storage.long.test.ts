// Storage failures: an unusable path, a full disk and damaged pages.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chownSync, closeSync, openSync, readFileSync, rmSync, writeFileSync, writeSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { test } from 'node:test'
import { sql } from 'kysely'
import { createLog } from '../../src/lib/log.ts'
import { readConfig } from '../../src/server/config/server.ts'
import { openServices } from '../../src/server/services.ts'
import { addEdge, addWorkspace, caller, serve, type TestServer } from '../support/api/server.ts'
import { connectPostgres, createDatabase } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { mountSmallDisk } from '../support/databases/small-disk.ts'
import { run, startServing } from '../support/processes/process.ts'
import { until } from '../support/until.ts'
import { failStart } from './failed-start.ts'

const NOBODY_UID = 65_534

test('adit serve with an unusable path exits with the reason', async (t) => {
  const env = { ADIT_DATABASE_URL: 'sqlite:/proc/nobody/adit.db', ADIT_PORT: '0' }
  const { code, stderr } = await run(t, ['serve', '--json'], env)
  assert.equal(code, 1)
  assert.equal(JSON.parse(stderr.trim().split('\n').at(-1) as string).error, 'database')
})

const readiness = async (server: { url: string }) => {
  const response = await fetch(`${server.url}/readyz`)
  return { status: response.status, json: (await response.json()) as { message?: string } }
}

const isReady = async (server: { url: string }) => (await readiness(server)).status === 200

type Edge = Awaited<ReturnType<typeof addEdge>>

/**
 * Sends reports until one is rejected. Each is for another edge and day, with a different number of tunnels
 * for each minute, so that it needs new pages.
 */
async function reportUntilFull(edges: Edge[]) {
  const today = Date.parse(new Date().toISOString().slice(0, 10))
  for (let accepted = 0; accepted < 30 * edges.length; accepted++) {
    const edge = edges[accepted % edges.length] as Edge
    const start = today - (Math.floor(accepted / edges.length) + 1) * 86_400_000
    const day = new Date(start).toISOString().slice(0, 10)
    const response = await edge.report({
      epoch: 'e',
      counters: [{ workspace: 'acme', day, requests: 1, bytesIn: 1, bytesOut: 0, events: 0 }],
      tunnels: ['acme', 'other'].flatMap((workspace) =>
        Array.from({ length: 1440 }, (_, index) => ({
          workspace,
          minute: new Date(start + index * 60_000).toISOString(),
          open: 100_000 + index,
        })),
      ),
    })
    if (response.status !== 200) return { rejected: response, accepted }
  }
  throw new Error('it was never full')
}

/** The guarantees of both engines while the disk is full, and afterwards. */
async function assertSurvivesFullDisk(server: TestServer, makeRoom: () => unknown) {
  const edge = await addEdge(server)
  const others = ['fra-2', 'fra-3', 'fra-4'].map((name) => addEdge(server, name))
  await addWorkspace(server, 'other')
  assert.ok(await isReady(server))
  const { rejected, accepted } = await reportUntilFull([edge, ...(await Promise.all(others))])
  assert.deepEqual([rejected.status, rejected.json.error], [503, 'unavailable'], rejected.text)
  assert.ok(Number(rejected.headers.get('retry-after')) >= 1)
  const { status, json } = await readiness(server)
  assert.equal(status, 503)
  assert.match(json.message ?? '', /disk is full/)
  // Not ready while a large write would fail, even if small ones succeed.
  for (let round = 0; round < 3; round++) {
    assert.equal(await isReady(server), false)
    await new Promise((resolve) => setTimeout(resolve, 400))
  }
  assert.equal((await server.call('GET', '/workspace')).status, 200, 'reads are served')
  assert.equal(
    (await server.call('GET', '/usage?days=40')).json.totalBytes,
    accepted,
    'nothing acknowledged is lost',
  )
  assert.equal((await edge.verify(server.key.token)).json.valid, true, 'keys are verified')
  await makeRoom()
  await until('it is ready again', () => isReady(server))
  assert.equal((await server.call('POST', '/tokens')).status, 201)
  assert.equal((await server.call('GET', '/usage?days=40')).json.totalBytes, accepted)
}

test('sqlite: at the page limit the node is not ready, serves reads, and recovers', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  // A limit of the connection for writes, which transactions use.
  const limit = (pages: number) =>
    server.services.store.transaction((db) => sql.raw(`pragma max_page_count = ${pages}`).execute(db))
  const { rows } = await sql<{ page_count: number }>`pragma page_count`.execute(server.services.store.db)
  await limit((rows[0]?.page_count as number) + 150)
  await assertSurvivesFullDisk(server, () => limit(1_000_000))
})

test('sqlite: on a full disk the node is not ready, serves reads, and recovers', async (t) => {
  const folder = mountSmallDisk(t, '12m')
  if (!folder) return t.skip('only root can mount a small disk')
  const filler = join(folder, 'filler')
  writeFileSync(filler, Buffer.alloc(10_500_000))
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_DATABASE_URL: `sqlite:${folder}/adit.db` } })
  await assertSurvivesFullDisk(server, () => rmSync(filler))
})

test('postgres: on a full disk the node is not ready, serves reads, and recovers', async (t) => {
  const folder = mountSmallDisk(t, '24m')
  if (!folder) return t.skip('only root can mount a small disk')
  chownSync(folder, NOBODY_UID, NOBODY_UID)
  const url = await createDatabase(t, 'postgres')
  const name = new URL(url).pathname.slice(1)
  const server = await serve(t, { engine: 'postgres', env: { ADIT_DATABASE_URL: url } })
  const admin = await connectPostgres(t, process.env.TEST_POSTGRES_URL as string)
  await admin.query(`create tablespace ${name} location '${folder}'`)
  const client = await connectPostgres(t, url)
  // What reports write, and what the check for readiness writes.
  for (const table of ['usage_counters', 'usage_hours', 'verifications']) {
    await client.query(`alter table ${table} set tablespace ${name}`)
    await client.query(`alter index ${table}_pkey set tablespace ${name}`)
  }
  const filler = join(folder, 'filler')
  execFileSync('sh', ['-c', `head -c 22m /dev/zero > ${filler}`])
  await assertSurvivesFullDisk(server, () => rmSync(filler))
})

const PAGE = 4096

/** Overwrites the root page of a table or index, which every lookup reads. */
function damage(path: string, name: string): void {
  const database = new DatabaseSync(path)
  database.exec('pragma wal_checkpoint(truncate)')
  const { rootpage } = database.prepare('select rootpage from sqlite_schema where name = ?').get(name) as {
    rootpage: number
  }
  database.close()
  assert.ok(readFileSync(path).length >= rootpage * PAGE)
  overwrite(path, (rootpage - 1) * PAGE, PAGE)
}

function overwrite(path: string, offset: number, length: number): void {
  const file = openSync(path, 'r+')
  writeSync(file, Buffer.alloc(length, 0xa5), 0, length, offset)
  closeSync(file)
}

test('sqlite: damaged pages cause 503 and one log line with the remedy', async (t) => {
  const database = await createDatabase(t, 'sqlite')
  const path = database.replace('sqlite:', '')
  const env = { ADIT_DATABASE_URL: database }
  const first = await startServing(t, env)
  const token = first.token as string
  await first.stop()
  damage(path, 'sqlite_autoindex_usage_days_1')
  const serving = await startServing(t, env)
  const call = caller(serving.api, token)
  assert.equal((await call('GET', '/workspace')).status, 200)
  for (let round = 0; round < 10; round++) {
    const { status, json } = await call('GET', '/usage')
    assert.deepEqual([status, json.error], [503, 'unavailable'])
  }
  assert.equal((await call('GET', '/workspace')).status, 200, 'other tables are served')
  const { status, json } = await readiness(serving)
  assert.equal(status, 503)
  assert.match(json.message ?? '', /damaged/)
  const { stderr } = await serving.stop()
  const lines = stderr.split('\n').filter((line) => /damaged|malformed/.test(line))
  assert.equal(lines.length, 1, stderr)
  assert.match(lines[0] as string, /"level":"error".*restore a backup.*\.recover/)
  const shown = await run(t, ['admin', 'usage', 'show', 'default'], env)
  assert.equal(shown.code, 1)
  assert.match(shown.stderr, /damaged.*restore a backup/)
})

test('sqlite: damaged first pages fail the start with a message that names the remedy', async (t) => {
  const damages: Record<string, (path: string) => void> = {
    schema_version: (path) => damage(path, 'schema_version'),
    header: (path) => overwrite(path, 0, 100),
  }
  for (const [name, damageFile] of Object.entries(damages)) {
    const path = (await createDatabase(t, 'sqlite')).replace('sqlite:', '')
    const config = readConfig({ ADIT_DATABASE_URL: `sqlite:${path}`, ADIT_SECRET: SECRET })
    const { store } = await openServices(config, createLog('silent'), 1_000)
    await store.close()
    damageFile(path)
    assert.match(await failStart(path), /restore a backup/, name)
  }
})
