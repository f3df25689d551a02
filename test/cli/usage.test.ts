// Errors: wrong usage, wrong configuration and failures.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import { createServer } from 'node:net'
import { dirname, join } from 'node:path'
import { test } from 'node:test'
import { settings } from '../../src/server/config/server.ts'
import { createDatabase, createFolder, createMigratedDatabase } from '../support/databases/create.ts'
import { SECRET } from '../support/databases/migrated-databases.ts'
import { assertFailed } from '../support/processes/commands.ts'
import { root, run, startProcess } from '../support/processes/process.ts'

test('wrong usage is exit 2 and names the mistake, as text and as JSON', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const cases: [args: string[], message: RegExp][] = [
    [['nope'], /Unknown command "nope"\. Run `adit --help` for a list of commands\.$/m],
    [['kyes', 'list'], /Unknown command "kyes list"\. Did you mean `adit keys list`\?$/m],
    [['status'], /Unknown command "status"\. Did you mean `adit workspace`\?$/m],
    [['whoami'], /Unknown command "whoami"\. Did you mean `adit workspace`\?$/m],
    [['tunel', '3000'], /Unknown command "tunel 3000"\. Did you mean `adit tunnel 3000`\?$/m],
    [['tunnel', '--port', '3000'], /Unknown flag --port\. The port is an argument: `adit tunnel 3000`\./],
    [['tunnel', '-p', '3000'], /Unknown flag -p\. The port is an argument: `adit tunnel 3000`\./],
    [['tunnel', '3000', '--subdomain', 'x'], /Unknown flag --subdomain\. Use --name\./],
    [
      ['login'],
      /Missing the argument <server> and an API key on standard input\. Without a terminal, run `adit login/,
    ],
    [['admin', 'user', 'delete', 'x'], /Unknown command "admin user delete x"/],
    [['admin', 'workspace', 'lst'], /Did you mean `adit admin workspace list`\?$/m],
    [['admin'], /`adit admin` needs a subcommand/],
    [['--what'], /Unknown flag --what\./],
    [['admin', 'key'], /admin key create/],
    [['admin', 'key', 'mint'], /Unknown command "admin key mint"/],
    [['serve', 'extra'], /Unexpected argument "extra"/],
    [['admin', 'key', 'find', `adit_${'k3Y'.repeat(16)}`], /Unexpected argument "\(not shown\)"/],
    [['admin', 'key', 'find', 'k3Y'.repeat(16)], /Unexpected argument "\(not shown\)"/],
    [[`adit_${'k3Y'.repeat(16)}`], /Unknown command "\(not shown\)"/],
    [['admin', 'workspace', 'create'], /Missing argument <slug>\. Run `adit admin workspace create --help`/],
    [['admin', 'key', 'create'], /Missing required flag --workspace <slug>/],
    [['admin', 'key', 'create', '--workspace'], /The flag --workspace needs a value: --workspace <slug>/],
    [['admin', 'key', 'create', '--workspace', '--label', 'x'], /The flag --workspace needs a value; write/],
    [
      ['admin', 'key', 'create', '--wrokspace', 'acme'],
      /Unknown flag --wrokspace\. Did you mean --workspace\?/,
    ],
    [['admin', 'workspace', 'create', 'x', '--provisioned=yes'], /The flag --provisioned takes no value/],
    [['admin', 'key', 'list', '--what'], /Unknown flag --what\. Run/],
    [['admin', 'workspace', 'create', 'Not A Slug'], /slug must be lower-case/],
    [['admin', 'workspace', 'create', '-'.repeat(3)], /./],
    [['admin', 'workspace', 'create', 'x'.repeat(64)], /slug/],
    [['admin', 'workspace', 'create', 'x', '--name', 'a\nb'], /name must not contain U\+000A/],
    [['admin', 'key', 'create', '--workspace', 'acme', '--label', 'x'.repeat(81)], /label/],
    [['admin', 'edge', 'create', ''], /name/],
  ]
  for (const [args, message] of cases) {
    const plain = await run(t, args, env)
    assertFailed(plain, 2, /^adit: /, args.join(' '))
    assert.match(plain.stderr, message)
    const json = await run(t, [...args, '--json'], env)
    assert.equal(json.code, 2)
    assert.equal(json.stdout, '')
    assert.deepEqual(Object.keys(JSON.parse(json.stderr)), ['error', 'message'])
  }
})

test('a missing or existing object is exit 1, and the error names it', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  await run(t, ['admin', 'workspace', 'create', 'acme'], env)
  const cases: [args: string[], message: RegExp][] = [
    [['admin', 'workspace', 'create', 'acme'], /Workspace "acme" already exists/],
    [['admin', 'key', 'create', '--workspace', 'none'], /There is no workspace "none"/],
    [['admin', 'key', 'list', '--workspace', 'none'], /There is no workspace "none"/],
    [['admin', 'workspace', 'provision', 'none'], /There is no workspace "none"/],
    [['admin', 'demo'], /There is no workspace "default"/],
    [['admin', 'key', 'revoke', 'tok_none'], /There is no API key tok_none/],
    [['admin', 'edge', 'revoke', 'edge_none'], /There is no active edge edge_none/],
  ]
  for (const [args, message] of cases) assertFailed(await run(t, args, env), 1, message, args.join(' '))
})

test('all configuration errors are reported together, without the password in a URL', async (t) => {
  const { code, stderr } = await run(t, ['serve'], {
    ADIT_PORT: 'http',
    ADIT_DATABASE_URL: 'mysql://root:hunter2@localhost/adit',
    ADIT_API_VARIANT: 'C',
    ADIT_BASE_URL: 'example.com',
    ADIT_TUNNEL_DOMAIN: 'Tunnels_Example',
    ADIT_RATE_LIMIT: '-1',
    ADIT_FENCING: 'none',
    ADIT_EDGE_ACKNOWLEDGMENTS: 'maybe',
    ADIT_WRITES_PER_HOUR: '0',
    ADIT_KEYS_IN_MEMORY: 'all',
    ADIT_USAGE_LINK_GBPS: '0',
    ADIT_BYTES_PER_MONTH: 'lots',
    ADIT_REQUESTS_PER_MONTH: '-1',
    ADIT_TUNNELS_PER_WORKSPACE: '0',
    ADIT_KEYS_PER_WORKSPACE: '0',
    ADIT_TCP_PORTS: '20999-20000',
    ADIT_TCP_PORTS_PER_WORKSPACE: '0',
    ADIT_TCP_PORT_RETENTION_DAYS: '0',
    ADIT_WORKSPACE_CREATION: 'anybody',
    ADIT_AUDIT_RETENTION_DAYS: '0',
    ADIT_STOP_DELAY: '301',
    ADIT_METRICS_PORT: '65536',
    ADIT_WORKERS: 'many',
    ADIT_ACCESS_LOG: 'some',
    ADIT_LOG_LEVEL: 'loud',
    ADIT_SECRET: 'too-short',
    ADIT_TRUSTED_PROXIES: 'localhost',
    ADIT_OIDC_ISSUER: 'https://id.example.com',
    ADIT_OIDC_LINK_BY_EMAIL: 'yes',
    ADIT_SMTP_URL: 'mail.example.com',
    ADIT_OPERATOR_EMAIL: 'nobody',
    ADIT_WEBHOOK_PRIVATE_NETWORKS: 'intranet',
    ADIT_MCP_ORIGINS: 'agents.example.com',
    ADIT_SECURITY_CONTACT: 'nobody',
  })
  assert.equal(code, 2)
  for (const name of Object.keys(settings).filter(
    (name) => !/^ADIT_((METRICS_)?HOST|EXECUTABLES)$/.test(name),
  ))
    assert.ok(stderr.includes(name), name)
  assert.ok(!stderr.includes('hunter2'))
  assert.match(
    stderr,
    /^adit: Invalid configuration:\n.*ADIT_OIDC_CLIENT_ID and ADIT_OIDC_CLIENT_SECRET must be set if ADIT_OIDC_ISSUER is/s,
  )
})

test('PostgreSQL requires a secret, and the error names a command that generates one', async (t) => {
  const result = await run(t, ['serve'], { ADIT_DATABASE_URL: 'postgres://127.0.0.1:1/adit' })
  assertFailed(result, 2, /^adit: ADIT_SECRET must be set with PostgreSQL.+openssl rand -base64 32\n$/)
})

test('a port in use and an unreachable database are errors of one line', async (t) => {
  const blocker = createServer().listen(0, '127.0.0.1')
  await new Promise((resolve) => blocker.once('listening', resolve))
  t.after(() => blocker.close())
  const { port } = blocker.address() as { port: number }
  const env = {
    ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'),
    ADIT_PORT: String(port),
    ADIT_LOG_LEVEL: 'silent',
  }
  const second = await run(t, ['serve'], env)
  assert.equal(second.code, 1)
  assert.equal(
    second.stderr,
    `adit: Another program listens on 127.0.0.1:${port}. Stop it, or set ADIT_PORT to a free port.\n`,
  )
  const unreachable = await run(t, ['admin', 'workspace', 'list'], {
    ADIT_DATABASE_URL: 'postgres://adit:hunter2@127.0.0.1:1/adit',
  })
  assert.equal(unreachable.code, 1)
  assert.match(
    unreachable.stderr,
    /^adit: Cannot use the PostgreSQL database: .*ECONNREFUSED.* Check ADIT_DATABASE_URL, and .*\.\n$/,
  )
  assert.ok(!unreachable.stderr.includes('hunter2'))
})

test('a URL of several hosts, or with a password that is not encoded, is an error with advice', async (t) => {
  for (const [url, code, message] of [
    [
      'postgres://adit:x@a.invalid:1,b.invalid:1/adit',
      2,
      /with one host and with @, \/ and : in the password/,
    ],
    ['postgres://adit:x@a.invalid,b.invalid/adit', 2, /with one host/],
    ['postgres://adit:p/w@a.invalid/adit', 2, /in the password percent-encoded/],
    ['postgres://adit:x@w/y@a.invalid/adit', 1, /In a password, write @ as %40, \/ as %2F and : as %3A\./],
  ] as const) {
    const result = await run(t, ['admin', 'workspace', 'list'], { ADIT_DATABASE_URL: url })
    assert.equal(result.code, code, url)
    assert.match(result.stderr, message)
  }
})

test('a database that does not exist on PostgreSQL is reported immediately, with advice', async (t) => {
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
    /^adit: Cannot use the PostgreSQL database: database "no_such_database" does not exist\. Create it with createdb/,
  )
})

test('an unknown ADIT_ variable is logged', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_PROT: '80', ADIT_PORT: '0' }
  const serving = startProcess(t, ['serve'], env)
  await serving.waitFor(/"unknown":\["ADIT_PROT"\],"msg":"unknown ADIT_ variables ignored"/, 'stderr')
})

test('unknown ADIT_ variables are named next to invalid values', async (t) => {
  for (const [command, name] of [
    ['serve', 'ADIT_PORT'],
    ['edge', 'ADIT_EDGE_PORT'],
  ] as const) {
    const { code, stderr } = await run(t, [command], { [name]: 'x', ADIT_PROT: '80' })
    assert.equal(code, 2)
    assert.match(
      stderr,
      /^adit: Unknown ADIT_ variables ignored: ADIT_PROT\.\nadit: Invalid configuration:\n/,
    )
  }
})

test('an unknown ADIT_ variable is a warning of other commands too, once and on stderr', async (t) => {
  const env = { ADIT_DATABASE_URL: await createDatabase(t, 'sqlite'), ADIT_DATABSE_URL: 'sqlite:other.db' }
  assert.equal((await run(t, ['admin', 'migrate'], env)).code, 0)
  const text = await run(t, ['admin', 'workspace', 'list'], env)
  assert.equal(text.stderr, 'adit: Unknown ADIT_ variables ignored: ADIT_DATABSE_URL.\n')
  const json = await run(t, ['admin', 'workspace', 'list', '--json'], env)
  assert.deepEqual(JSON.parse(json.stdout), [])
  assert.deepEqual(JSON.parse(json.stderr), {
    warning: 'Unknown ADIT_ variables ignored: ADIT_DATABSE_URL.',
  })
})

test('adit edge names only the settings that are missing', async (t) => {
  const cases: [env: Record<string, string>, expected: RegExp][] = [
    [{ ADIT_URL: 'http://127.0.0.1:1' }, /Missing ADIT_EDGE_KEY \(credential .+`\)\. Without/],
    [{ ADIT_EDGE_KEY: 'x' }, /Missing ADIT_URL \(URL of the control plane\)\. Without/],
    [{}, /Missing ADIT_URL \(.+\) and ADIT_EDGE_KEY \(.+\)\. Without/],
  ]
  for (const [env, expected] of cases) assertFailed(await run(t, ['edge'], env), 2, expected)
})

test('admin commands do not create a database: the path may be mistyped', async (t) => {
  const path = join(createFolder(t), 'mistyped', 'adit.db')
  const env = { ADIT_DATABASE_URL: `sqlite:${path}` }
  for (const args of [
    ['admin', 'workspace', 'list'],
    ['admin', 'workspace', 'create', 'acme'],
    ['admin', 'edge', 'create', 'edge-1'],
    ['admin', 'nodes'],
  ]) {
    const { code, stdout, stderr } = await run(t, args, env)
    assert.deepEqual([code, stdout], [1, ''], args.join(' '))
    assert.equal(
      stderr,
      `adit: No database at ${path}. Check ADIT_DATABASE_URL; ` +
        '`adit serve` or `adit admin migrate` creates one.\n',
    )
    assert.ok(!existsSync(dirname(path)))
  }
  const migrated = await run(t, ['admin', 'migrate'], env)
  assert.deepEqual([migrated.code, migrated.stdout], [0, `${path} is up to date.\n`])
  assert.equal((await run(t, ['admin', 'migrate'], env)).code, 0)
  assert.equal((await run(t, ['admin', 'workspace', 'list'], env)).code, 0)
})

test('--json is accepted at any position', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
  for (const args of [
    ['--json', 'admin', 'workspace', 'list'],
    ['admin', '--json', 'workspace', 'list'],
  ])
    assert.deepEqual(JSON.parse((await run(t, args, env)).stdout), [])
})

test('a closed output pipe is not an error', async (t) => {
  const env = { ADIT_DATABASE_URL: await createMigratedDatabase(t, 'sqlite') }
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

test('on an old Node the error is one line', () => {
  const setVersion = "Object.defineProperty(process.versions, 'node', { value: '20.1.0' })"
  const script = `${setVersion}; import('${join(root, 'bin/adit.js')}')`
  const { status, stderr } = spawnSync(process.execPath, ['-e', script], { encoding: 'utf8' })
  assert.equal(status, 1)
  assert.match(stderr, /^adit needs Node 24\.9 or later, but this is v[\d.]+\. .*\n$/)
})
