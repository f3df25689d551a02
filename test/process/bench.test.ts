// The bench itself takes ten minutes; that it can be asked what it does is seen here.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/process.ts'

const bench = (...words: string[]) =>
  spawnSync(process.execPath, [join(root, 'bench/run.ts'), ...words], { encoding: 'utf8' })

test('the bench lists its figures with their targets, explains itself, and refuses what it does not know', () => {
  const { status, stdout } = bench('--list')
  assert.equal(status, 0)
  for (const line of [/^workspace_vs_bare +≥ 0.9 /m, /^start +≤ 12 /m, /^report_flat +≥ 0.85 /m])
    assert.match(stdout, line)
  assert.match(bench('--help').stdout, /npm run bench -- /)
  const unknown = bench('verfy_flat')
  assert.deepEqual([unknown.status, unknown.stdout], [2, ''])
  assert.match(unknown.stderr, /no figure verfy_flat\. There are workspace_vs_bare, /)
})
