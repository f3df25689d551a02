// The command line of the benchmark, of which a whole run takes ten minutes, and the model of the simulation.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { test } from 'node:test'
import { simulate } from '../../bench/simulation/model.ts'
import { root } from '../support/process.ts'

const bench = (...args: string[]) =>
  spawnSync(process.execPath, [join(root, 'bench/run.ts'), ...args], { encoding: 'utf8' })

test('the benchmark lists its figures with targets, prints help, and rejects unknown figures', () => {
  const { status, stdout } = bench('--list')
  assert.equal(status, 0)
  for (const line of [/^workspace_vs_bare +≥ 0.9 /m, /^start +≤ 9 /m, /^report_flat +≥ 0.85 /m])
    assert.match(stdout, line)
  assert.match(bench('--help').stdout, /npm run bench -- /)
  const unknown = bench('verfy_flat')
  assert.deepEqual([unknown.status, unknown.stdout], [2, ''])
  assert.match(unknown.stderr, /Unknown figure: verfy_flat\. Available: workspace_vs_bare, /)
})

const costs = {
  transactionMs: 2,
  counterMs: 0.07,
  newCounterMs: 0.15,
  hourMs: 0.1,
  newHourMs: 0.2,
  minuteMs: 0,
  databaseCpuMs: 0.05,
  nodeCpuMs: 0.02,
  walBytes: 800,
  deletedRowMs: 0.01,
}

test('the simulation is deterministic; with back-pressure an overloaded node merges half of the time', () => {
  const scenario = {
    edges: 300,
    nodes: 1,
    databaseCores: 2,
    hasBackPressure: true,
    openPerEdge: () => 500,
    requestGapS: 1,
    startsAt: 0,
    seconds: 600,
  }
  const buckets = simulate(scenario, costs)
  assert.deepEqual(simulate(scenario, costs), buckets)
  const busy = (of: typeof buckets) => of.slice(-30).reduce((sum, bucket) => sum + bucket.busy / 30, 0)
  assert.ok(busy(buckets) > 0.3 && busy(buckets) < 0.7, `${busy(buckets)}`)
  assert.equal(buckets.slice(-30).filter(({ rejected }) => rejected > 0).length, 0)
  const without = simulate({ ...scenario, hasBackPressure: false }, costs)
  assert.ok(busy(without) > 0.95, `${busy(without)}`)
})
