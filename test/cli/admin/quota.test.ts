// `adit admin workspace quota`: shows and sets quotas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createMigratedDatabase } from '../../support/databases/create.ts'
import { pluck } from '../../support/pluck.ts'
import { run } from '../../support/processes/process.ts'

test('quotas are shown, set, and set back to the default', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite'),
    ADIT_LOG_LEVEL: 'silent',
    ADIT_REQUESTS_PER_MONTH: '10M',
  }
  const quota = (...args: string[]) => run(t, ['admin', 'workspace', 'quota', 'acme', ...args], env)
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const set = await quota('--bytes', '500Gi', '--requests', 'none', '--tunnels', '5', '--json')
  assert.deepEqual(pluck(JSON.parse(set.stdout), 'kind', 'limit', 'isDefault'), [
    ['bytes', 500 * 2 ** 30, false],
    ['requests', null, false],
    ['tunnels', 5, false],
    ['keys', 1_000, true],
  ])
  const shown = await quota('--requests', 'default')
  assert.match(shown.stdout, /^bytes per month +500\.0 GiB +0 B +500\.0 GiB +\S+ +workspace *$/m)
  assert.match(shown.stdout, /^requests per month +10,000,000 +0 +10,000,000 +\S+ +default *$/m)
  const rejected = await quota('--bytes', '1.5T')
  assert.equal(rejected.code, 2)
  assert.match(rejected.stderr, /--bytes must be a whole number from 1 to 9000T.*or `none` or `default`/)
})
