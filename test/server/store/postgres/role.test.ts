// Roles without special attributes, created by the statements of docs/operations/postgres.md.
import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { sql } from 'kysely'
import { serve } from '../../../support/api/server.ts'
import { atEnd, type Test } from '../../../support/cleanup.ts'
import { createDatabase } from '../../../support/databases/create.ts'
import { onServer } from '../../../support/databases/migrated-databases.ts'
import { root } from '../../../support/processes/process.ts'
import { failOpen, open } from './open.ts'

const document = readFileSync(join(root, 'docs/operations/postgres.md'), 'utf8')
const [creation = [], ownSchema = [], grants = []] = [...document.matchAll(/```sql\n([\s\S]*?)```/g)].map(
  ([, block = '']) => block.split(';\n').filter(Boolean),
)

/** Runs documented statements for another role. */
async function runAs(role: string, url: string, statements: string[]): Promise<void> {
  assert.ok(statements.length >= 2)
  const database = new URL(url).pathname.slice(1)
  for (const statement of statements)
    await onServer(
      url,
      statement.replace('database shared', `database ${database}`).replaceAll(/\badit\b/g, role),
    )
}

const urlAs = (role: string, url: string) =>
  Object.assign(new URL(url), { username: role, password: 'change-me' }).href

/** A role and its database. Returns its name and the URL of the database for the role. */
async function createRole(t: Test) {
  const server = process.env.TEST_POSTGRES_URL as string
  const role = `adit_test_${randomBytes(6).toString('hex')}`
  atEnd(t, async () => {
    await onServer(server, `drop database if exists ${role} with (force)`)
    await onServer(server, `drop role ${role}`)
  })
  await runAs(role, server, creation)
  return { role, url: urlAs(role, Object.assign(new URL(server), { pathname: `/${role}` }).href) }
}

async function createAndRevoke(t: Test, url: string): Promise<void> {
  const { call, post } = await serve(t, { engine: 'postgres', env: { ADIT_DATABASE_URL: url } })
  const { json: key } = await post('/tokens', { label: 'second' })
  assert.equal((await call('GET', '/workspace', { key: key.token })).status, 200)
  assert.equal((await call('DELETE', `/tokens/${key.id}`)).status, 200)
  assert.equal((await call('GET', '/workspace', { key: key.token })).status, 401)
}

test('a server runs as a role that only owns its database', async (t) => {
  const { role, url } = await createRole(t)
  await createAndRevoke(t, url)
  const { store } = await open(url)
  const { rows } = await sql`select rolsuper, rolcreatedb, rolcreaterole, rolbypassrls, rolreplication
    from pg_roles where rolname = ${role} and rolname = current_user`.execute(store.db)
  await store.close()
  assert.deepEqual(Object.values(rows[0] as object), [false, false, false, false, false])
})

test('without a schema to create tables in, the error names the grant; a schema of its own suffices', async (t) => {
  const { role } = await createRole(t)
  const shared = await createDatabase(t, 'postgres')
  const url = urlAs(role, shared)
  const remedy = `run "grant usage, create on schema public to <role>".`
  assert.match(await failOpen(url), new RegExp(`permission denied for schema public\\. .*${remedy}`))
  await onServer(shared, 'revoke usage on schema public from public')
  assert.match(await failOpen(url), new RegExp(`no schema has been selected.*${remedy}`))
  await runAs(role, shared, ownSchema)
  await createAndRevoke(t, url)
})

test('a role that may only use the tables runs a server on a migrated schema', async (t) => {
  const { role } = await createRole(t)
  const shared = await createDatabase(t, 'postgres')
  await (await open(shared)).store.close()
  const url = urlAs(role, shared)
  assert.match(await failOpen(url), /permission denied for table schema_version\. .*grant select, insert/)
  await runAs(role, shared, grants)
  await createAndRevoke(t, url)
})
