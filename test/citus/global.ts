// Before all tests of `npm run test:citus`: empties the given database. The suites of `npm test` that run
// here too create their databases on it, see test/support/databases/create.ts; rules that do not depend on
// the engine are tested on SQLite there, also here.
import { fileURLToPath } from 'node:url'
import { emptyDatabase } from '../support/databases/citus.ts'
import { query } from '../support/databases/client.ts'
import { createSqliteTemplate, removeSqliteTemplate } from '../support/global.ts'

export async function globalSetup(): Promise<void> {
  const { env } = process
  env.NODE_COMPILE_CACHE ??= fileURLToPath(new URL('../../node_modules/.cache/adit/test', import.meta.url))
  const url = env.ADIT_CITUS_URL
  if (!url)
    throw new Error(
      'Set ADIT_CITUS_URL to a database on the coordinator of a Citus cluster. It is EMPTIED. See CONTRIBUTING.md.',
    )
  delete env.ADIT_DATABASE_URL
  const [{ version }] = await query(url, 'select citus_version() as version')
  const nodes = await query(
    url,
    "select nodename || ':' || nodeport as address from pg_dist_node where groupid > 0",
  )
  if (nodes.length < 2) throw new Error('The cluster must have a coordinator and at least two workers.')
  process.stdout.write(`${version}; workers ${nodes.map(({ address }) => address).join(', ')}\n`)
  await emptyDatabase(url)
  env.TEST_CITUS_URL = url
  await createSqliteTemplate()
}

export const globalTeardown = removeSqliteTemplate
