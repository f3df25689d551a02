// What the global setup and the tests know of the databases that it migrates for them to copy.
import { join } from 'node:path'
import pg from 'pg'

/** Environment variables that name the migrated databases. */
export const TEMPLATES = { sqlite: 'TEST_SQLITE_TEMPLATE', postgres: 'TEST_POSTGRES_TEMPLATE' } as const
export const SQLITE_FILE = 'adit.db'

/** ADIT_SECRET of every test server; required with PostgreSQL. */
export const SECRET = 'only-for-tests-0123456789abcdefghijklmn'

export const sqliteUrl = (folder: string) => `sqlite:${join(folder, SQLITE_FILE)}`

export async function onServer(server: string, statement: string): Promise<void> {
  const client = new pg.Client(server)
  await client.connect()
  await client.query(statement)
  await client.end()
}
