// The time that a command needs to start.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { startProcess } from '../support/processes/process.ts'

test('help starts within 150 ms', async (t) => {
  // The fastest of many: other tests run at the same time.
  let best = Number.POSITIVE_INFINITY
  for (const first = performance.now(); best >= 150 && performance.now() - first < 30_000; ) {
    const start = performance.now()
    await startProcess(t, ['--help'], {}).ended
    best = Math.min(best, performance.now() - start)
  }
  t.diagnostic(`${Math.round(best)} ms`)
  assert.ok(best < 150, `${best} ms`)
})
