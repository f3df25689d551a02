// The package as `npm pack` makes it, installed into an empty folder elsewhere.
import assert from 'node:assert/strict'
import { execFileSync, spawn } from 'node:child_process'
import { readdirSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { root } from '../support/process.ts'
import { until } from '../support/until.ts'

const QUIET = ['--no-audit', '--no-fund', '--prefer-offline', '--loglevel=error']

test('installed from its package it serves, shows its page, and its client and edge kit can be imported and checked', async (t) => {
  const folder = createFolder(t)
  const npm = (cwd: string, ...words: string[]) =>
    execFileSync('npm', words, { cwd, encoding: 'utf8', stdio: ['ignore', 'pipe', 'inherit'] })
  // Built already, by whoever runs the tests.
  npm(root, 'pack', '--ignore-scripts', '--pack-destination', folder, '--silent')
  const [tarball] = readdirSync(folder).filter((name) => name.endsWith('.tgz'))
  writeFileSync(join(folder, 'package.json'), '{ "name": "elsewhere", "private": true, "type": "module" }')
  npm(folder, 'install', `./${tarball}`, ...QUIET)
  const bin = join(folder, 'node_modules/.bin')
  const env = { PATH: `${bin}:${process.env.PATH}`, HOME: folder }

  const help = execFileSync(join(bin, 'adit'), ['--help'], { cwd: folder, env, encoding: 'utf8' })
  assert.match(help, /keys create/)

  const serving = spawn(join(bin, 'adit'), ['serve', '--json'], {
    cwd: folder,
    env: { ...env, ADIT_PORT: '0', ADIT_LOG_LEVEL: 'warn' },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  atEnd(t, () => serving.kill('SIGKILL'))
  let said = ''
  serving.stdout.on('data', (chunk) => {
    said += chunk
  })
  await until('it serves', () => said.includes('\n'), 20_000)
  const { url, token } = JSON.parse(said)
  const page = await (await fetch(url)).text()
  const [script] = /assets\/index-[\w-]+\.js/.exec(page) ?? assert.fail('the page has no script')
  assert.equal((await fetch(`${url}/${script}`)).status, 200)
  assert.equal((await fetch(`${url}/docs`)).status, 200)

  writeFileSync(
    join(folder, 'use.ts'),
    `import { createClient } from 'adit/client'
     import { createControlPlane, startVerifier } from 'adit/edge'
     const client = createClient({ baseUrl: process.argv[2] ?? '', apiKey: process.argv[3] ?? '' })
     const { slug }: { slug: string } = await client.workspace.read()
     startVerifier(createControlPlane({ url: process.argv[2] ?? '', credential: 'adit_edge_x' })).close()
     process.stdout.write(slug)`,
  )
  const used = execFileSync(join(bin, 'node'), ['use.ts', url, token], { cwd: folder, env, encoding: 'utf8' })
  assert.equal(used, 'default')
  const checks = [
    '--noEmit',
    '--strict',
    '--module',
    'nodenext',
    '--target',
    'esnext',
    '--types',
    'node',
    '--typeRoots',
  ]
  execFileSync(
    join(root, 'node_modules/.bin/tsc'),
    [...checks, join(root, 'node_modules/@types'), '--skipLibCheck', 'use.ts'],
    { cwd: folder, stdio: ['ignore', 'inherit', 'inherit'] },
  )
})
