// The first start: its output works when it is pasted, and shows no secret twice.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { existsSync, statSync } from 'node:fs'
import { dirname } from 'node:path'
import { test } from 'node:test'
import { openBrowser, PASSWORD } from '../support/accounts/users.ts'
import { caller } from '../support/api/server.ts'
import { atEnd } from '../support/cleanup.ts'
import { createDatabase, engines } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { createCluster } from '../support/databases/postgres.ts'
import { serving, startProcess, startServing } from '../support/processes/process.ts'

test('on an empty SQLite database a key and a link are shown once, and work', async (t) => {
  const database = await createDatabase(t, 'sqlite')
  const env = { ADIT_DATABASE_URL: database, ADIT_PORT: '0' }
  const first = startProcess(t, ['serve'], env)
  const [, command = '', key = ''] = await first.waitFor(
    /^ {2}(curl -H "Authorization: Bearer (adit_\w+)" http\S+)$/m,
  )
  await first.waitFor(/API +http:\/\/127\.0\.0\.1:\d+\/api\/v1/)
  const [, docs = ''] = await first.waitFor(/Documentation +(http\S+)/)
  const response = execFileSync('bash', ['-c', `${command} -s`], { encoding: 'utf8' })
  assert.deepEqual(JSON.parse(response), {
    slug: 'default',
    name: 'Default',
    provisioned: true,
    tunnelBase: 'default.localhost',
  })
  assert.equal((await fetch(docs)).status, 200)
  const [, url = '', link = ''] = await first.waitFor(/^ {2}(http\S+)\/link#([\w-]{43})$/m)
  const owner = openBrowser(url)
  const use = { link, email: 'ann@example.com', name: 'Ann', password: PASSWORD }
  assert.deepEqual((await owner.post('/links/read', { link })).json.step, 'choose')
  assert.equal((await owner.post('/links/redeem', use)).status, 200)
  assert.equal((await owner.get('/workspaces/default')).json.role, 'owner')
  // A percent-encoded key in a path must not reach the log.
  assert.equal((await fetch(`${url}/${key.replace('adit_', 'ad%69t%5F')}`)).status, 404)
  const ended = await first.stop()
  assert.equal(ended.code, 0)
  for (const secret of [key, key.slice('adit_'.length), link, PASSWORD])
    assert.ok(!ended.stderr.includes(secret), 'a secret is in the log')

  const second = startProcess(t, ['serve'], env)
  await second.waitFor(/Documentation/)
  const { stdout } = await second.stop()
  assert.ok(!/adit_\w{20}|link#/.test(stdout), 'shown a second time')
  assert.match(stdout, /admin key create/)
})

test('an empty PostgreSQL database gets no first key', async (t) => {
  const serving = await startServing(t, { ADIT_DATABASE_URL: await createDatabase(t, 'postgres') })
  assert.equal(serving.token, undefined)
})

test('the database, its folder and the secret are created with access for their owner only', async (t) => {
  const path = (await createDatabase(t, 'sqlite'))
    .replace('sqlite:', '')
    .replace('adit.db', 'new/folder/adit.db')
  await startServing(t, { ADIT_DATABASE_URL: `sqlite:${path}`, ADIT_SECRET: '' })
  assert.ok(existsSync(path))
  assert.equal(statSync(dirname(path)).mode & 0o777, 0o700)
  for (const file of [path, `${path}-wal`, `${path}-shm`, `${path}.secret`])
    assert.equal(statSync(file).mode & 0o777, 0o600, file)
})

test('no secret in the path, query or headers of a request is logged', async (t) => {
  const serving = await startServing(t, {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_LOG_LEVEL: 'trace',
    ADIT_ACCESS_LOG: 'all',
  })
  const token = serving.token as string
  const call = caller(serving.api, token)
  const key = (await call('POST', '/tokens', { headers: { 'idempotency-key': token } })).json
  for (const [method, path] of [
    ['GET', '/workspace'],
    ['GET', `/workspace?key=${key.token}`],
    ['DELETE', `/tokens/${key.token}`],
    ['GET', `/${key.token}`],
    ['GET', `/tokens?cursor=${key.token}`],
  ] as const) {
    await call(method, path)
    await call(method, path, { key: key.token.slice(0, -1) })
    await call(method, path, { key: null, headers: { 'x-request-id': key.token, 'user-agent': key.token } })
  }
  const { stderr } = await serving.stop()
  const lines = stderr.trim().split('\n')
  assert.ok(lines.length > 10)
  for (const line of lines) {
    assert.ok(JSON.parse(line).msg, 'each line is one JSON object')
    for (const secret of [token, key.token]) assert.ok(!line.includes(secret.slice(5, 25)), line)
  }
  assert.ok(lines.some((line) => JSON.parse(line).msg === 'authentication failed'))
})

for (const engine of engines)
  test(`${engine}: four nodes start concurrently on an empty database, which is set up once`, async (t) => {
    const env = { ADIT_DATABASE_URL: await createDatabase(t, engine) }
    const nodes = await Promise.all(Array.from({ length: 4 }, () => startServing(t, env)))
    for (const { url } of nodes) assert.equal((await fetch(`${url}/readyz`)).status, 200)
    const tokens = nodes.flatMap(({ token }) => token ?? [])
    assert.equal(
      tokens.length,
      engine === 'sqlite' ? 1 : 0,
      'only the first node creates the first workspace',
    )
    for (const token of tokens)
      for (const { api } of nodes)
        assert.equal((await caller(api, token)('GET', '/tokens')).json.tokens.length, 1)
    for (const { child, ended } of nodes) {
      child.kill('SIGTERM')
      const { code, stderr } = await ended
      assert.equal(code, 0)
      const warnings = stderr.split('\n').filter((line) => line && JSON.parse(line).level !== 'info')
      assert.deepEqual(warnings, [])
    }
  })

test('a server that starts before its PostgreSQL waits for it and logs that', async (t) => {
  const cluster = await createCluster()
  atEnd(t, () => cluster.remove())
  const env = { ADIT_DATABASE_URL: `${cluster.url}/postgres`, ADIT_PORT: '0', ADIT_SECRET: SECRET }
  const starting = startProcess(t, ['serve', '--json'], env)
  await starting.waitFor(/waiting for the database/, 'stderr')
  await cluster.start()
  const { url, child, ended } = await serving(starting)
  assert.equal((await fetch(`${url}/readyz`)).status, 200)
  child.kill('SIGTERM')
  assert.equal((await ended).code, 0)
})
