// Wrong usage, help and failures: what people read when it does not go as they thought.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { createServer } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { commands } from '../../src/cli/commands.ts'
import { settings } from '../../src/config.ts'
import { createDatabase, SECRET } from '../support/databases.ts'
import { root, run, startProcess } from '../support/process.ts'

test('help lists every command, and every command explains itself', async (t) => {
  for (const words of [[], ['--help'], ['-h'], ['help']]) {
    const { code, stdout, stderr } = await run(t, words, {})
    assert.equal(code, 0)
    assert.equal(stderr, '')
    for (const { name, summary } of commands) {
      assert.ok(stdout.includes(name), name)
      assert.ok(stdout.includes(summary), name)
    }
  }
  for (const { name, options = {}, arguments: names = [] } of commands) {
    const { code, stdout } = await run(t, [...name.split(' '), '--help'], {})
    assert.equal(code, 0)
    assert.ok(stdout.startsWith(`Usage: adit ${name}`))
    for (const option of [...Object.keys(options), 'json', 'help']) assert.ok(stdout.includes(`--${option}`))
    for (const argument of names) assert.ok(stdout.includes(`<${argument}>`))
  }
  const serveHelp = (await run(t, ['help', 'serve'], {})).stdout
  for (const name of Object.keys(settings)) assert.ok(serveHelp.includes(name), name)
})

test('wrong usage is exit 2 with what is wrong, in words or as JSON', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const cases: [words: string[], message: RegExp][] = [
    [['nope'], /There is no command "nope"/],
    [['admin'], /"adit admin" needs one of its subcommands/],
    [['--what'], /There is no command/],
    [['admin', 'key'], /admin key create/],
    [['admin', 'key', 'mint'], /There is no command/],
    [['serve', 'extra'], /"extra" is one argument too many/],
    [['admin', 'workspace', 'create'], /<slug> is missing/],
    [['admin', 'key', 'create'], /--workspace <slug> is missing/],
    [['admin', 'key', 'create', '--workspace'], /--workspace/],
    [['admin', 'key', 'list', '--what'], /--what/],
    [['admin', 'workspace', 'create', 'Not A Slug'], /slug must be lower-case/],
    [['admin', 'workspace', 'create', '-'.repeat(3)], /./],
    [['admin', 'workspace', 'create', 'x'.repeat(64)], /slug/],
    [['admin', 'workspace', 'create', 'x', '--name', 'a\nb'], /name must not contain U\+000A/],
    [['admin', 'key', 'create', '--workspace', 'acme', '--label', 'x'.repeat(81)], /label/],
    [['admin', 'edge', 'create', ''], /name/],
  ]
  for (const [words, message] of cases) {
    const plain = await run(t, words, env)
    assert.equal(plain.code, 2, words.join(' '))
    assert.equal(plain.stdout, '')
    assert.match(plain.stderr, /^adit: /)
    assert.match(plain.stderr, message)
    const json = await run(t, [...words, '--json'], env)
    assert.equal(json.code, 2)
    assert.equal(json.stdout, '')
    const said = JSON.parse(json.stderr)
    assert.deepEqual(Object.keys(said), ['error', 'message'])
  }
})

test('what is not there, or there already, is exit 1 and says so', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const cases: [words: string[], message: RegExp][] = [
    [['admin', 'workspace', 'create', 'acme'], /Workspace "acme" already exists/],
    [['admin', 'key', 'create', '--workspace', 'none'], /There is no workspace "none"/],
    [['admin', 'key', 'list', '--workspace', 'none'], /There is no workspace "none"/],
    [['admin', 'workspace', 'provision', 'none'], /There is no workspace "none"/],
    [['admin', 'demo'], /There is no workspace "default"/],
    [['admin', 'key', 'revoke', 'tok_none'], /There is no active key tok_none/],
    [['admin', 'edge', 'revoke', 'edge_none'], /There is no active edge edge_none/],
  ]
  for (const [words, message] of cases) {
    const { code, stderr, stdout } = await run(t, words, env)
    assert.equal(code, 1, words.join(' '))
    assert.equal(stdout, '')
    assert.match(stderr, message)
  }
})

test('every mistake in the configuration is reported at once, without the password in it', async (t) => {
  const { code, stderr } = await run(t, ['serve'], {
    ADIT_PORT: 'http',
    ADIT_DATABASE_URL: 'mysql://root:hunter2@localhost/adit',
    ADIT_API_VARIANT: 'C',
    ADIT_BASE_URL: 'example.com',
    ADIT_TUNNEL_DOMAIN: 'Tunnels_Example',
    ADIT_RATE_LIMIT: '-1',
    ADIT_KEYS_IN_MEMORY: 'all',
    ADIT_USAGE_LINK_GBPS: '0',
    ADIT_KEYS_PER_WORKSPACE: '0',
    ADIT_STOP_DELAY: '301',
    ADIT_LOG_LEVEL: 'loud',
    ADIT_SECRET: 'too-short',
    ADIT_TRUSTED_PROXIES: 'localhost',
    ADIT_OIDC_ISSUER: 'https://id.example.com',
    ADIT_OIDC_LINK_BY_EMAIL: 'yes',
    ADIT_SMTP_URL: 'mail.example.com',
  })
  assert.equal(code, 2)
  for (const name of Object.keys(settings).filter((name) => name !== 'ADIT_HOST'))
    assert.ok(stderr.includes(name), name)
  assert.ok(!stderr.includes('hunter2'))
  assert.match(
    stderr,
    /ADIT_OIDC_CLIENT_ID and ADIT_OIDC_CLIENT_SECRET must be set too, because ADIT_OIDC_ISSUER is/,
  )
})

test('PostgreSQL asks for a secret before anything else, and says how to make one', async (t) => {
  const { code, stderr } = await run(t, ['serve'], { ADIT_DATABASE_URL: 'postgres://127.0.0.1:1/adit' })
  assert.equal(code, 2)
  assert.match(stderr, /^adit: ADIT_SECRET must be set with PostgreSQL.+openssl rand -base64 32\n$/)
})

test('a port that is taken, and a database that cannot be reached, are said in one line', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => blocker.once('listening', resolve))
  t.after(() => blocker.close())
  const { port } = blocker.address() as { port: number }
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_PORT: String(port),
    ADIT_LOG_LEVEL: 'silent',
  }
  const taken = await run(t, ['serve'], env)
  assert.equal(taken.code, 1)
  assert.equal(
    taken.stderr,
    `adit: Another program listens on 127.0.0.1:${port}. Stop it, or set ADIT_PORT to a free port.\n`,
  )
  const unreachable = await run(t, ['admin', 'workspace', 'list'], {
    ADIT_DATABASE_URL: 'postgres://adit:hunter2@127.0.0.1:1/adit',
  })
  assert.equal(unreachable.code, 1)
  assert.match(
    unreachable.stderr,
    /^adit: Cannot use the PostgreSQL database: .*ECONNREFUSED.* Check ADIT_DATABASE_URL\.\n$/,
  )
  assert.ok(!unreachable.stderr.includes('hunter2'))
})

test('a PostgreSQL that refuses us is reported at once, with what to do', async (t) => {
  const server = new URL(process.env.TEST_POSTGRES_URL as string)
  server.pathname = '/no_such_database'
  const { code, stderr } = await run(t, ['serve'], {
    ADIT_DATABASE_URL: server.href,
    ADIT_LOG_LEVEL: 'silent',
    ADIT_SECRET: SECRET,
  })
  assert.equal(code, 1)
  assert.match(
    stderr,
    /^adit: PostgreSQL: database "no_such_database" does not exist\. Create it with createdb/,
  )
})

test('a setting that was mistyped is pointed out, and the version is told', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_PROT: '80', ADIT_PORT: '0' }
  const serving = startProcess(t, ['serve'], env)
  await serving.says(/ADIT_PROT/, 'stderr')
  assert.match((await run(t, ['--version'], {})).stdout, /^\d+\.\d+\.\d+\n$/)
})

test('--json may stand anywhere', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  for (const words of [
    ['--json', 'admin', 'workspace', 'list'],
    ['admin', '--json', 'workspace', 'list'],
  ])
    assert.deepEqual(JSON.parse((await run(t, words, env)).stdout), [])
})

test('whoever stops reading the output early is no failure', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite') }
  const listing = startProcess(t, ['admin', 'workspace', 'list'], env)
  listing.child.stdout?.destroy()
  const { code, stderr } = await listing.ended
  assert.deepEqual([code, stderr.includes('    at ')], [0, false])
})

test('"npx adit" works in a clone', () => {
  const { status, stdout } = spawnSync('npx', ['--no-install', 'adit', '--help'], {
    cwd: root,
    encoding: 'utf8',
  })
  assert.equal(status, 0)
  assert.match(stdout, /Usage: adit/)
})

test('on a Node that is too old the command says so in one line', () => {
  const script = `Object.defineProperty(process.versions, 'node', { value: '20.1.0' }); import('${join(root, 'bin/adit.js')}')`
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stderr, /^adit needs Node 24 or later, this is v[\d.]+\. .*\n$/)
})
