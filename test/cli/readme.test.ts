// The commands of the README, run as written.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { createFolder } from '../support/databases/create.ts'
import { startStandaloneEdge } from '../support/edges/standalone-edge.ts'
import { fetchHost } from '../support/edges/tunnels.ts'
import { root, startProcess } from '../support/processes/process.ts'

test('the quick start of the README publishes its folder, and nothing else of the clone', async (t) => {
  const blocks = readFileSync(join(root, 'README.md'), 'utf8').matchAll(/^```sh\n(.*?)^```/gms)
  const lines = [...blocks]
    .map(([, block = '']) => block.split('\n'))
    .find((one) => /adit tunnel/.test(`${one}`))
  const command = lines?.findIndex((line) => line.startsWith('adit tunnel')) ?? -1
  assert.ok(lines && command > 0, 'the README opens a tunnel')
  const clone = createFolder(t)
  const secrets = [
    'data/adit.db',
    'data/adit.db.secret',
    '.git/config',
    '.env',
    'tokens.json',
    'package.json',
  ]
  for (const folder of ['data', '.git']) mkdirSync(join(clone, folder))
  for (const name of secrets) writeFileSync(join(clone, name), 'SECRET')
  execFileSync('sh', ['-ec', lines.slice(0, command).join('\n')], { cwd: clone })
  const args = (lines[command] as string).replace(/ *#.*/, '').split(' ').slice(1)
  const { edge, keys } = await startStandaloneEdge(t, ['default'])
  const env = { ADIT_API_KEY: keys[0] as string, ADIT_EDGE_URL: edge.url, HOME: createFolder(t) }
  const tunnel = startProcess(t, args, env, '', clone)
  const [url] = await tunnel.waitFor(/^http:\/\/\S+$/m)
  const get = (path: string) => fetchHost(edge, new URL(url).host, { path })
  const page = await get('/')
  assert.deepEqual([page.status, String(page.body)], [200, 'Hello from a tunnel.\n'])
  for (const path of secrets.flatMap((name) => [
    `/${name}`,
    `/../${name}`,
    `/%2e%2e/${name}`,
    `/..%2f${name}`,
  ])) {
    const { status, body } = await get(path)
    assert.ok(status >= 400 && !body.includes('SECRET'), path)
  }
})
