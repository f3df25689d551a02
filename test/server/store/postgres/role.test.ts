// Roles without special attributes, created by the statements of docs/operations/postgres.md.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { sql } from 'kysely'
import { serve } from '../../../support/api/server.ts'
import type { Test } from '../../../support/cleanup.ts'
import { query } from '../../../support/databases/client.ts'
import { createDatabase } from '../../../support/databases/create.ts'
import { failOpen, open } from './open.ts'
import { createRole, grants, ownSchema, runAs, urlAs } from './roles.ts'

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
  await query(shared, 'revoke usage on schema public from public')
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
