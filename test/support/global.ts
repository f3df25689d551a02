// Before all tests: one PostgreSQL for the whole run, unless ADIT_DATABASE_URL names one to use.
import { type Cluster, createCluster } from './postgres.ts'

let cluster: Cluster | undefined

export async function globalSetup(): Promise<void> {
  const given = process.env.ADIT_DATABASE_URL
  delete process.env.ADIT_DATABASE_URL
  if (given?.startsWith('postgres')) {
    process.env.TEST_POSTGRES_URL = given
    return
  }
  // Nothing here outlives the run, so nothing has to reach the disk.
  cluster = await createCluster(['fsync=off', 'synchronous_commit=off', 'full_page_writes=off'])
  await cluster.start()
  process.env.TEST_POSTGRES_URL = `${cluster.url}/postgres`
}

export async function globalTeardown(): Promise<void> {
  await cluster?.remove()
}
