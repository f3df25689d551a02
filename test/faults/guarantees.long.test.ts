// Real processes on a real database under every fault we can inject: no key is accepted after its revocation
// was acknowledged, nothing acknowledged is lost, nothing is duplicated, and every response is documented.
import { test } from 'node:test'
import { deployOnPostgres, deployOnSqlite } from './deployments.ts'
import { assertNoViolations } from './run.ts'

const SECONDS = 6

test('three nodes on PostgreSQL keep every guarantee while nodes, links and database fail', async (t) => {
  await assertNoViolations(t, await deployOnPostgres(t, 3), { seconds: SECONDS })
})

test('three processes on one SQLite file, two of them workers, keep every guarantee while they are killed and paused', async (t) => {
  await assertNoViolations(t, await deployOnSqlite(t), { seconds: SECONDS })
})
