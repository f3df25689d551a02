// Before all tests: one PostgreSQL for the whole run, unless ADIT_DATABASE_URL names one to use, and a
// migrated database on each engine for the tests to copy.
import { existsSync, mkdtempSync, rmSync, statfsSync } from 'node:fs'
import { freemem, tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { query } from './databases/client.ts'
import { migrate } from './databases/migrate.ts'
import { sqliteUrl, TEMPLATES } from './databases/migrated-databases.ts'
import { type Cluster, createCluster } from './databases/postgres.ts'

/**
 * Nothing here outlives the run, so nothing has to reach the disk; and no table lives long enough to vacuum.
 */
const SETTINGS = ['fsync=off', 'synchronous_commit=off', 'full_page_writes=off', 'autovacuum=off', 'jit=off']
const MEMORY_FOLDER = '/dev/shm'
const MEMORY_MIN_BYTES = 4 * 1024 ** 3
const postgresTemplate = `adit_template_${process.pid}`
let sqliteTemplate: string
let cluster: Cluster | undefined

export async function globalSetup(): Promise<void> {
  const { env } = process
  // Test files share compiled sources instead of each compiling them again.
  env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/adit/test', import.meta.url))
  env.TMPDIR ??= memoryFolder()
  const server = env.ADIT_DATABASE_URL
  delete env.ADIT_DATABASE_URL
  if (server?.startsWith('postgres')) env.TEST_POSTGRES_URL = server
  else {
    cluster = await createCluster(SETTINGS)
    await cluster.start()
    env.TEST_POSTGRES_URL = `${cluster.url}/postgres`
  }
  await query(env.TEST_POSTGRES_URL, `create database ${postgresTemplate}`)
  const url = new URL(env.TEST_POSTGRES_URL)
  url.pathname = `/${postgresTemplate}`
  await migrate(url.href)
  env[TEMPLATES.postgres] = postgresTemplate
  await createSqliteTemplate()
}

export async function globalTeardown(): Promise<void> {
  removeSqliteTemplate()
  if (cluster) await cluster.remove()
  else await query(process.env.TEST_POSTGRES_URL as string, `drop database if exists ${postgresTemplate}`)
}

export async function createSqliteTemplate(): Promise<void> {
  sqliteTemplate = mkdtempSync(join(tmpdir(), 'adit-template-'))
  await migrate(sqliteUrl(sqliteTemplate))
  process.env[TEMPLATES.sqlite] = sqliteTemplate
}

export const removeSqliteTemplate = () => rmSync(sqliteTemplate, { recursive: true, force: true })

/** Databases of tests are in memory where there is enough: a commit to SQLite waits for the disk. */
function memoryFolder(): string {
  if (!existsSync(MEMORY_FOLDER) || freemem() < MEMORY_MIN_BYTES) return tmpdir()
  const { bavail, bsize } = statfsSync(MEMORY_FOLDER)
  return bavail * bsize < MEMORY_MIN_BYTES ? tmpdir() : MEMORY_FOLDER
}
