// Real processes on a real database under every fault we can inject: no key is accepted after its revocation
// was acknowledged, and no edge carries a byte for it, nothing acknowledged is lost, nothing is duplicated,
// and every response is documented.
import { test } from 'node:test'
import { deployOnPostgres, deployOnSqlite } from './deployments.ts'
import { assertNoTraffic, assertNoViolations } from './run.ts'

const SECONDS = 6
/** Some faults are longer than the lease of an edge, which is 25 s. */
const TUNNEL_SECONDS = 45

test('three nodes on PostgreSQL keep every guarantee while nodes, links and database fail', async (t) => {
  await assertNoViolations(t, await deployOnPostgres(t, 3), { seconds: SECONDS })
})

test('three processes on one SQLite file, two of them workers, keep every guarantee while they are killed and paused', async (t) => {
  await assertNoViolations(t, await deployOnSqlite(t), { seconds: SECONDS })
})

test('two nodes on PostgreSQL: no edge carries a byte for a key after its revocation, while edges are killed, stopped and cut off', async (t) => {
  await assertNoTraffic(t, await deployOnPostgres(t, 2), { seconds: TUNNEL_SECONDS })
})

test('one node on SQLite: no edge carries a byte for a key after its revocation, while edges are killed, stopped and cut off', async (t) => {
  await assertNoTraffic(t, await deployOnSqlite(t, 1), { seconds: TUNNEL_SECONDS })
})
