// Real processes on a real database, troubled in every way we know of: whatever happens, a revocation is over when it says
// so, nothing acknowledged is lost, nothing is there twice, and every answer is one that is documented.
import { test } from 'node:test'
import { deployOnPostgres, deployOnSqlite } from './deployments.ts'
import { assertSound } from './run.ts'

const SECONDS = 10

test('three nodes on PostgreSQL keep every promise while nodes, wires and database fail', async (t) => {
  await assertSound(t, await deployOnPostgres(t, 3), { seconds: SECONDS })
})

test('two processes on one SQLite file keep every promise while they are killed and frozen', async (t) => {
  await assertSound(t, await deployOnSqlite(t, 2), { seconds: SECONDS })
})
