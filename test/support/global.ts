// Before all tests: one PostgreSQL for the whole run, unless ADIT_DATABASE_URL names one to use, and a
// migrated database on each engine for the tests to copy.
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { readConfig } from '../../src/config.ts'
import { createLog } from '../../src/log.ts'
import { openServices } from '../../src/services.ts'
import { onServer, SECRET, sqliteUrl, TEMPLATES } from './databases.ts'
import { type Cluster, createCluster } from './postgres.ts'

const MIGRATE_TIMEOUT_MS = 30_000
const postgresTemplate = `adit_template_${process.pid}`
let sqliteTemplate: string
let cluster: Cluster | undefined

export async function globalSetup(): Promise<void> {
  const { env } = process
  // Test files share compiled sources instead of each compiling them again.
  env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/adit/test', import.meta.url))
  const given = env.ADIT_DATABASE_URL
  delete env.ADIT_DATABASE_URL
  if (given?.startsWith('postgres')) env.TEST_POSTGRES_URL = given
  else {
    // Nothing here outlives the run, so nothing has to reach the disk.
    cluster = await createCluster(['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'])
    await cluster.start()
    env.TEST_POSTGRES_URL = `${cluster.url}/postgres`
  }
  await onServer(env.TEST_POSTGRES_URL, `create database ${postgresTemplate}`)
  const url = new URL(env.TEST_POSTGRES_URL)
  url.pathname = `/${postgresTemplate}`
  await migrated(url.href)
  env[TEMPLATES.postgres] = postgresTemplate
  sqliteTemplate = mkdtempSync(join(tmpdir(), 'adit-template-'))
  await migrated(sqliteUrl(sqliteTemplate))
  env[TEMPLATES.sqlite] = sqliteTemplate
}

export async function globalTeardown(): Promise<void> {
  rmSync(sqliteTemplate, { recursive: true, force: true })
  if (cluster) await cluster.remove()
  else await onServer(process.env.TEST_POSTGRES_URL as string, `drop database if exists ${postgresTemplate}`)
}

async function migrated(database: string): Promise<void> {
  const config = readConfig({ ADIT_DATABASE_URL: database, ADIT_SECRET: SECRET })
  const { store } = await openServices(config, createLog('silent'), MIGRATE_TIMEOUT_MS)
  await store.close()
}
