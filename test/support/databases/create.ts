// A database for each test, on either engine.
import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after } from 'node:test'
import pg from 'pg'
import { atEnd, type Test } from '../cleanup.ts'
import { createCitusSchema, createDistributedSchema } from './citus.ts'
import { query, withClient } from './client.ts'
import { SQLITE_FILE, sqliteUrl, TEMPLATES } from './migrated-databases.ts'

export type Engine = 'sqlite' | 'postgres'
/** In `npm run test:citus` a PostgreSQL database is one of the cluster. */
const onCitus = process.env.TEST_CITUS_URL !== undefined
export const engines: readonly Engine[] = onCitus ? ['postgres'] : ['sqlite', 'postgres']

const MISSING_SETUP = 'Run the tests through "npm test": its global setup starts PostgreSQL.'

/** An empty database. Returns the value for ADIT_DATABASE_URL. */
export async function createDatabase(t: Test, engine: Engine): Promise<string> {
  if (engine === 'sqlite') return sqliteUrl(createFolder(t))
  return onCitus ? createCitusSchema(t) : createPostgresDatabase(t)
}

/** A copy of the database that the global setup migrated: quicker than running every migration again. */
export async function createMigratedDatabase(t: Test, engine: Engine): Promise<string> {
  if (onCitus && engine === 'postgres') return createDistributedSchema(t)
  const template = process.env[TEMPLATES[engine]]
  if (!template) throw new Error(MISSING_SETUP)
  if (engine === 'postgres') return takeMigratedDatabase(t, template)
  const folder = createFolder(t)
  copyFileSync(join(template, SQLITE_FILE), join(folder, SQLITE_FILE))
  return sqliteUrl(folder)
}

async function createPostgresDatabase(t: Test): Promise<string> {
  const name = await createOnServer('template1')
  atEnd(t, () => drop(name))
  return toUrl(name)
}

/** Deleted rows take space until their table is truncated. */
const DELETE_BYTES_MAX = 256 * 1024

/** Not in use by a test, in the state of the template. */
const available: string[] = []
let initial: Promise<Content> | undefined

/** Schema and rows of a database that was just copied from the template. */
interface Content {
  schema: string
  rows: Map<string, unknown[]>
}

/**
 * Tests of a file reuse databases: creating and dropping one costs PostgreSQL more CPU than many a test. One
 * whose schema was changed is not reused.
 */
async function takeMigratedDatabase(t: Test, template: string): Promise<string> {
  const name = available.pop() ?? (await createOnServer(template))
  initial ??= withClient(toUrl(name), readContent)
  const content = await initial
  atEnd(t, async () => {
    if (await withClient(toUrl(name), (client) => restore(client, content))) available.push(name)
    else await drop(name)
  })
  return toUrl(name)
}

after(async () => {
  for (const name of available) await drop(name)
})

async function readContent(client: pg.Client): Promise<Content> {
  const { rows: tables } = await client.query<{ name: string }>(
    "select quote_ident(relname) as name from pg_class where relkind = 'r' and relnamespace = 'public'::regnamespace",
  )
  const rows = new Map<string, unknown[]>()
  for (const { name } of tables) {
    const found = await client.query<{ row: unknown }>(`select to_json(t) as row from ${name} as t`)
    rows.set(
      name,
      found.rows.map(({ row }) => row),
    )
  }
  return { schema: await readSchema(client), rows }
}

/** False if the schema was changed. */
async function restore(client: pg.Client, { schema, rows }: Content): Promise<boolean> {
  if ((await readSchema(client)) !== schema) return false
  await client.query(
    `select pg_terminate_backend(pid) from pg_stat_activity
     where datname = current_database() and pid <> pg_backend_pid()`,
  )
  await empty(client, [...rows.keys()])
  for (const [table, initialRows] of rows)
    for (const row of initialRows)
      await client.query(`insert into ${table} select * from json_populate_record(null::${table}, $1)`, [row])
  return true
}

/** Deletes rows, since `truncate` costs as much for an empty table as for a large one. */
async function empty(client: pg.Client, tables: string[]): Promise<void> {
  const { rows: used } = await client.query<{ name: string; large: boolean }>(
    `select name, pg_relation_size(name) > ${DELETE_BYTES_MAX} as large
     from unnest($1::text[]) as name where pg_relation_size(name) > 0`,
    [tables],
  )
  const large = used.filter((table) => table.large)
  if (large.length > 0) await client.query(`truncate ${large.map(({ name }) => name).join(', ')} cascade`)
  // Without foreign keys, so that the order of the tables does not matter.
  const deletes = used.filter((table) => !table.large).map(({ name }) => `delete from ${name}`)
  await client.query(['set session_replication_role = replica', ...deletes].join(';'))
  await client.query('set session_replication_role = default')
}

/** Tables, indexes and columns. */
async function readSchema(client: pg.Client): Promise<string> {
  const { rows } = await client.query<{ schema: string }>(
    `select string_agg(relname || ' ' || attname || ' ' || atttypid, ',' order by relname, attnum) as schema
     from pg_class join pg_attribute on attrelid = pg_class.oid
     where relnamespace = 'public'::regnamespace and attnum > 0`,
  )
  return rows[0]?.schema ?? ''
}

function postgresServer(): string {
  const server = process.env.TEST_POSTGRES_URL
  if (!server) throw new Error(MISSING_SETUP)
  return server
}

async function createOnServer(template: string): Promise<string> {
  const name = `adit_test_${randomBytes(8).toString('hex')}`
  await query(postgresServer(), `create database ${name} template ${template}`)
  return name
}

function toUrl(database: string): string {
  const url = new URL(postgresServer())
  url.pathname = `/${database}`
  return url.href
}

const drop = (name: string) => query(postgresServer(), `drop database if exists ${name} with (force)`)

/** A session of another client, which ends with the test. */
export async function connectPostgres(t: Test, url: string): Promise<pg.Client> {
  const client = new pg.Client(url)
  await client.connect()
  atEnd(t, () => client.end())
  return client
}

export function createFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'adit-test-'))
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}
