// The lowest Node that package.json allows, from npm.
import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { promisify } from 'node:util'
import { installNode } from '../support/processes/node-versions.ts'
import { root } from '../support/processes/process.ts'

/** The API on both databases, and the whole product in processes. */
const FILES = [
  'test/server/api/tokens.test.ts',
  'test/server/http/wire.test.ts',
  'test/edge/end-to-end.test.ts',
  'test/edge/ingress/connections.test.ts',
  'test/tunnel-client/runs.test.ts',
]

test('the lowest Node that package.json allows passes the tests of the API and of the whole product', async (t) => {
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, lowest] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? assert.fail(engines.node)
  const node = installNode(t, `${lowest}.0`)
  if (!node) return t.skip('cannot install it from npm')
  // With this variable of the test runner, the tests would be reported to this process.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const tests = promisify(execFile)(node, ['--test', '--test-reporter=spec', ...FILES], { cwd: root, env })
  const { stdout } = await tests.catch(({ stdout }) => assert.fail(stdout))
  t.diagnostic(/tests \d+/.exec(stdout)?.[0] ?? assert.fail(stdout))
})
