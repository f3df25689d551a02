// The command line of the benchmark, of which a whole run takes ten minutes.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, 'bench/run.ts'), ...args], { encoding: 'utf8' })

test('the benchmark lists its figures with targets, prints help, and rejects unknown figures', () => {
  const { status, stdout } = bench('--list')
  assert.equal(status, 0)
  for (const line of [/^workspace_vs_bare +≥ 0.92 /m, /^start +≤ 9 /m, /^report_flat +≥ 0.85 /m])
    assert.match(stdout, line)
  assert.match(bench('--help').stdout, /npm run bench -- /)
  const unknown = bench('verfy_flat')
  assert.deepEqual([unknown.status, unknown.stdout], [2, ''])
  assert.match(unknown.stderr, /Unknown figure: verfy_flat\. Available: workspace_vs_bare, /)
})
