// The names of test files decide what runs when (test/run.ts).
import assert from 'node:assert/strict'
import { globSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { root } from '../support/processes/process.ts'

const PROMISES_A_TIME =
  /\btest\(\s*['`].*\b(within a second|(within|at most) 2 s|(within|by (less|more) than) \d+ ms)\b/

test('tests that promise a time are in files *.timed.test.ts, which run alone', () => {
  const files = globSync('test/**/*.test.ts', { cwd: root })
  const timed = files.filter((file) => PROMISES_A_TIME.test(readFileSync(join(root, file), 'utf8')))
  assert.ok(timed.length > 10)
  for (const file of timed)
    assert.match(file, /\.timed\.test\.ts$/, `${file}: move its tests that promise a time to *.timed.test.ts`)
})
