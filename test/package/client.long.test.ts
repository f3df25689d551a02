// The package with the client alone, installed with npm into an empty folder and run by Node 20.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { CLIENT_PACKAGE } from '../../src/lib/client-package.ts'
import type { Test } from '../support/cleanup.ts'
import { startPlane } from '../support/edges/tunnels.ts'
import { installNode } from '../support/processes/node-versions.ts'
import { root } from '../support/processes/process.ts'
import { assertClientWorks } from './client-use.ts'
import { pack } from './packed.ts'

const MB = 1_000_000
/** Of the inspector's page, compressed. */
const PAGE_BYTES_MAX = 240_000
const { folder } = pack({ after: after as Test['after'] }).install([CLIENT_PACKAGE], '--offline')
const modules = join(folder, 'node_modules')
const program = join(modules, '.bin/adit')

/** The Node of the system, if it is one of those that the whole program does not run on. */
function oldSystemNode(): string | undefined {
  const folders = (process.env.PATH ?? '').split(':').filter((path) => !path.includes('node_modules'))
  return folders
    .map((path) => join(path, 'node'))
    .find((node) => /^v2[0-3]\./.test(spawnSync(node, ['--version'], { encoding: 'utf8' }).stdout ?? ''))
}

test('the client has no dependencies and is small', () => {
  const packages = readdirSync(modules).filter((name) => !name.startsWith('.'))
  assert.deepEqual(packages, [CLIENT_PACKAGE])
  const manifest = JSON.parse(readFileSync(join(modules, CLIENT_PACKAGE, 'package.json'), 'utf8'))
  assert.deepEqual([manifest.dependencies, manifest.engines], [undefined, { node: '>=20' }])
  assert.ok(statSync(join(root, 'dist', `${CLIENT_PACKAGE}.tgz`)).size < MB)
})

test("the inspector's page is in the client, and is small", (t) => {
  const page = join(modules, CLIENT_PACKAGE, 'inspector')
  const files = ['index.html', ...readdirSync(join(page, 'assets')).map((name) => `assets/${name}`)]
  const bytes = files.reduce((sum, name) => sum + gzipSync(readFileSync(join(page, name))).length, 0)
  t.diagnostic(`${files.length} files, compressed ${bytes} bytes`)
  assert.ok(bytes > 50_000 && bytes < PAGE_BYTES_MAX, `${bytes} bytes`)
})

test('the client signs in, lists keys, serves MCP and opens a tunnel, on the Node of the system', async (t) => {
  const node = oldSystemNode() ?? process.execPath
  t.diagnostic(execFileSync(node, ['--version'], { encoding: 'utf8' }))
  const plane = await startPlane(t, ['acme'])
  await assertClientWorks(t, plane, { command: [node, program], env: { HOME: folder } })
})

test('the client runs on the first Node 20', async (t) => {
  const node = installNode(t, '20.0.0')
  if (!node) return t.skip('cannot install it from npm')
  const plane = await startPlane(t, ['acme'])
  await assertClientWorks(t, plane, { command: [node, program], env: { HOME: folder } })
})

test('a command of the server says where it is', () => {
  const { status, stderr } = spawnSync(process.execPath, [program, 'serve'], { encoding: 'utf8' })
  assert.equal(status, 2)
  assert.match(stderr, /client only \(adit-cli\), which has no `adit serve`\. Run it on the server/)
})
