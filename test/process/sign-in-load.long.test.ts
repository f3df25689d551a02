// The code for sign-in is loaded in the background after the start, and from few files.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import { createDatabase } from '../support/databases/create.ts'
import { root, startProcess } from '../support/processes/process.ts'

test('sign-in is loaded before its first use, and after the server listens', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_PORT: '0',
    ADIT_LOG_LEVEL: 'debug',
  }
  const serving = startProcess(t, ['serve', '--json'], env)
  const { url, setupLink } = JSON.parse((await serving.waitFor(/^\{.*\}$/m))[0])
  await serving.waitFor(/"msg":"sign-in loaded"/, 'stderr')
  const browser = openBrowser(url)
  const use = {
    link: setupLink.split('#')[1],
    email: 'ann@example.com',
    name: 'Ann',
    password: PASSWORD,
  }
  assert.equal((await browser.post('/links/redeem', use)).status, 200)
  assert.equal((await browser.get('/session')).json.user.name, 'Ann')
  const { code, stderr } = await serving.stop()
  assert.equal(code, 0)
  const lines = stderr.trim().split('\n')
  const findLine = (text: string) => lines.findIndex((line) => line.includes(text))
  assert.ok(findLine('sign-in loaded') < findLine('/dashboard/api'), 'a request waited for sign-in')
})

test('a server that is stopped while it loads sign-in exits with 0, and logs no failure', async (t) => {
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_PORT: '0',
    ADIT_LOG_LEVEL: 'debug',
  }
  const serving = startProcess(t, ['serve', '--json'], env)
  await serving.waitFor(/^\{.*\}$/m)
  const { code, stderr } = await serving.stop()
  assert.equal(code, 0)
  assert.doesNotMatch(stderr, /failed to load/)
})

test('the bundle contains the sign-in code, instead of hundreds of files', () => {
  execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')])
  const seen = new Set<string>()
  const packages = new Set<string>()
  const walk = (file: string): void => {
    if (seen.has(file)) return
    seen.add(file)
    const text = readFileSync(join(root, 'dist', file), 'utf8')
    for (const [, target = ''] of text.matchAll(/(?:^|\W)(?:from|import\(?) ?"([^"]+)"/gm))
      if (/^\.\/[\w-]+\.js$/.test(target)) walk(target.slice(2))
      else if (/^(jose|openid-client|oauth4webapi)(\/|$)/.test(target)) packages.add(target)
  }
  walk('main.js')
  assert.deepEqual([...packages], [])
  assert.ok(
    [...seen].some((file) => file.startsWith('sso-')),
    'the chunk with sign-in was found',
  )
})
