// A database for each test, on either engine, removed when the test ends.
import { randomBytes } from 'node:crypto'
import { copyFileSync, mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import pg from 'pg'
import { createCitusSchema, createDistributedSchema } from './citus.ts'
import { atEnd, type Test } from './cleanup.ts'

export type Engine = 'sqlite' | 'postgres'
/** In `npm run test:citus` a PostgreSQL database is one of the cluster. */
const onCitus = process.env.TEST_CITUS_URL !== undefined
export const engines: readonly Engine[] = onCitus ? ['postgres'] : ['sqlite', 'postgres']

/** Environment variables in which the global setup passes the migrated databases to the tests. */
export const TEMPLATES = { sqlite: 'TEST_SQLITE_TEMPLATE', postgres: 'TEST_POSTGRES_TEMPLATE' } as const
const MISSING_SETUP = 'Run the tests through "npm test": its global setup starts PostgreSQL.'
const SQLITE_FILE = 'adit.db'

/** ADIT_SECRET of every test server; required with PostgreSQL. */
export const SECRET = 'only-for-tests-0123456789abcdefghijklmn'

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
  if (engine === 'postgres') return createPostgresDatabase(t, template)
  const folder = createFolder(t)
  copyFileSync(join(template, SQLITE_FILE), join(folder, SQLITE_FILE))
  return sqliteUrl(folder)
}

async function createPostgresDatabase(t: Test, template = 'template1'): Promise<string> {
  const server = process.env.TEST_POSTGRES_URL
  if (!server) throw new Error(MISSING_SETUP)
  const name = `adit_test_${randomBytes(8).toString('hex')}`
  await onServer(server, `create database ${name} template ${template}`)
  atEnd(t, () => onServer(server, `drop database if exists ${name} with (force)`))
  const url = new URL(server)
  url.pathname = `/${name}`
  return url.href
}

export function createFolder(t: Test): string {
  const folder = mkdtempSync(join(tmpdir(), 'adit-test-'))
  atEnd(t, () => rmSync(folder, { recursive: true, force: true }))
  return folder
}

export const sqliteUrl = (folder: string) => `sqlite:${join(folder, SQLITE_FILE)}`

export async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  await client.query(statement)
  await client.end()
}
