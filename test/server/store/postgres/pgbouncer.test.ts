// Nodes behind a real PgBouncer in transaction mode: each transaction may run on another session, and no
// notification arrives.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import pg from 'pg'
import { databaseChecks } from '../../../../src/server/doctor/database.ts'
import { addNode, caller, serve } from '../../../support/api/server.ts'
import { atEnd } from '../../../support/cleanup.ts'
import { hasPgbouncer, startPgbouncer } from '../../../support/databases/pgbouncer.ts'
import { failOpen } from './open.ts'
import { createRole, document, runAs, timeouts } from './roles.ts'

const skip = hasPgbouncer ? false : 'pgbouncer is not installed'
const SESSIONS = 4
const MODE = ['pool_mode = transaction', `default_pool_size = ${SESSIONS}`]
const [, documented = ''] = /```ini\n([\s\S]*?)```/.exec(document) ?? []

async function checkDatabase(url: string): Promise<string> {
  const { checks, close } = databaseChecks({ database: { engine: 'postgres', url } }, Date.now)
  const found = await checks.find(({ name }) => name === 'database')?.run()
  await close()
  return JSON.stringify(found)
}

test('a PgBouncer that rejects the timeouts is explained at the start', { skip }, async (t) => {
  const url = await startPgbouncer(t, process.env.TEST_POSTGRES_URL as string, MODE)
  assert.match(
    await failOpen(url),
    /unsupported startup parameter.* Set ignore_startup_parameters in PgBouncer, as docs\/operations/,
  )
})

test('behind PgBouncer in transaction mode, no node accepts a key after its revocation', {
  skip,
}, async (t) => {
  const { role, url: direct } = await createRole(t)
  const url = await startPgbouncer(t, direct, [...MODE, documented])
  const warning = /The timeouts of Adit do not apply/
  assert.match(await checkDatabase(url), warning)
  await runAs(role, process.env.TEST_POSTGRES_URL as string, timeouts)
  const client = new pg.Client(direct)
  await client.connect()
  atEnd(t, () => client.end())
  // Sessions that began before the settings of the role.
  await client.query(`select pg_terminate_backend(pid) from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`)
  assert.doesNotMatch(await checkDatabase(url), warning)

  const server = await serve(t, { engine: 'postgres', env: { ADIT_DATABASE_URL: url } })
  const { url: other } = await addNode(t, server)
  const callOther = caller(`${other}/api/v1`, server.key.token)
  const times: number[] = []
  async function createAndRevoke() {
    const { json: key, ...created } = await server.post('/tokens', { label: 'second' })
    assert.equal(created.status, 201, created.text)
    const use = () => callOther('GET', '/workspace', { key: key.token })
    const used = await use()
    assert.equal(used.status, 200, used.text)
    const startedAt = performance.now()
    const revoked = await server.call('DELETE', `/tokens/${key.id}`)
    assert.equal(revoked.status, 200, revoked.text)
    times.push(performance.now() - startedAt)
    assert.equal((await use()).status, 401)
  }
  for (let round = 0; round < 5; round++) await Promise.all(Array.from({ length: 5 }, createAndRevoke))
  t.diagnostic(`revocations took ${times.map(Math.round).sort((a, b) => a - b)} ms`)
  const { rows } = await client.query(`select count(*)::integer as sessions from pg_stat_activity
    where datname = current_database() and pid <> pg_backend_pid()`)
  assert.ok(rows[0].sessions <= SESSIONS, `${rows[0].sessions} sessions`)
})
