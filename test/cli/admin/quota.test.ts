// `adit admin workspace quota`: shows and sets quotas.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { pluck } from '../../support/pluck.ts'
import { assertFailed, createOperator } from '../../support/processes/commands.ts'

test('quotas are shown, set, and set back to the default', async (t) => {
  const { adit } = await createOperator(t, 'sqlite', { ADIT_REQUESTS_PER_MONTH: '10M' })
  const quota = (...args: string[]) => adit('workspace', 'quota', 'acme', ...args)
  await adit('workspace', 'create', 'acme')
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
  assertFailed(rejected, 2, /--bytes must be a whole number from 1 to 9000T.*or `none` or `default`/)
})
