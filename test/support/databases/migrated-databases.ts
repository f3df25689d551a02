// The databases that the global setup migrates for the tests to copy.
import { join } from 'node:path'

/** Environment variables that name the migrated databases. */
export const TEMPLATES = { sqlite: 'TEST_SQLITE_TEMPLATE', postgres: 'TEST_POSTGRES_TEMPLATE' } as const
export const SQLITE_FILE = 'adit.db'

/** ADIT_SECRET of every test server; required with PostgreSQL. */
export const SECRET = 'only-for-tests-0123456789abcdefghijklmn'

export const sqliteUrl = (folder: string) => `sqlite:${join(folder, SQLITE_FILE)}`
