// Commands that call the API: real processes against a real server, in both variants.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import { dirname, join } from 'node:path'
import { after, test } from 'node:test'
import { fillWithUsage } from '../../src/server/domain/setup/demo.ts'
import { serve, type TestServer } from '../support/api/server.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { listen } from '../support/network/listen.ts'
import { pluck } from '../support/pluck.ts'
import { assertFailed } from '../support/processes/commands.ts'
import { freePort } from '../support/processes/ports.ts'
import { run } from '../support/processes/process.ts'

/** A user with a home folder of their own, and access to a server through the environment. */
function createUser(t: Test, server?: TestServer) {
  const folder = createFolder(t)
  const own = { XDG_CONFIG_HOME: folder, HOME: folder }
  const known = server ? { ADIT_URL: server.url, ADIT_API_KEY: server.key.token } : {}
  const adit = (...args: string[]) => run(t, args, { ...own, ...known })
  return { folder, own, known, adit, profiles: join(folder, 'adit/profiles.json') }
}

function writeProfile(path: string, profile: { url: string; apiKey: string }): void {
  mkdirSync(dirname(path), { recursive: true })
  writeFileSync(path, JSON.stringify({ current: 'default', profiles: { default: profile } }))
}

const parse = ({ stdout }: { stdout: string }) => JSON.parse(stdout)

/** For tests that leave its key alone. */
const server = await serve({ after }, { engine: 'sqlite' })

test('variant A: a key reads its workspace and usage, and creates and revokes keys', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  await fillWithUsage(server.services, server.workspace.id, 40, () => {})
  const { adit } = createUser(t, server)

  const shown = await adit('workspace')
  assert.deepEqual([shown.code, shown.stderr], [0, ''])
  assert.match(
    shown.stdout,
    /^Acme \(acme\)\n {2}Provisioned {4}yes\n {2}Tunnel domain {2}acme\.localhost\n$/,
  )
  assert.equal(parse(await adit('workspace', '--json')).tunnelBase, 'acme.localhost')

  const creation = await adit('keys', 'create', '--label', 'ci')
  assert.match(creation.stdout, /^adit_[0-9A-Za-z]{49}\n$/, 'the key alone, so that KEY=$(…) works')
  assert.match(creation.stderr, /Created API key tok_\w+/)
  assert.equal((await server.call('GET', '/workspace', { key: creation.stdout.trim() })).status, 200)
  const named = await adit('keys', 'create', '--name', 'named', '--json')
  assert.equal(parse(named).label, 'named', 'as other programs call it')
  await adit('keys', 'revoke', parse(named).id, '--yes')
  const asJson = await adit('keys', 'create', '--json')
  assert.equal(asJson.stderr, '')
  assert.deepEqual(Object.keys(parse(asJson)), ['id', 'token', 'label', 'createdAt'])

  const listed = parse(await adit('keys', 'list', '--json'))
  assert.deepEqual(pluck(listed, 'label'), ['', 'named', 'ci', 'first'])
  assert.match((await adit('keys', 'list')).stdout, /^ID +LABEL +CREATED +LAST USED +STATE\ntok_/)
  const { id } = listed[2]
  assertFailed(await adit('keys', 'revoke', id), 2, /Confirm with --yes/)
  const revoked = await adit('keys', 'revoke', id, '--yes', '--json')
  assert.deepEqual([parse(revoked), revoked.stderr], [{ id, revoked: true }, ''])
  const again = await adit('keys', 'revoke', id, '--yes')
  assertFailed(again, 1, /No active API key tok_\w+\. Run `adit keys list`/)

  const usage = parse(await adit('usage', '--days', '7', '--json'))
  assert.equal(usage.series.length, 7)
  const chart = (await adit('usage')).stdout
  assert.match(
    chart,
    /^Usage of the last 30 days \(UTC\), including today so far\n\n {2}Traffic +[\d.]+ [KMG]iB in both directions\n/,
  )
  assert.match(
    chart,
    /directions\n {2}Peak tunnels +\d+ open at the same time\n {2}Tunnel events +[\d,]+ \(opened/,
  )
  assert.equal(chart.split('\n').filter((line) => /^\d{4}-\d\d-\d\d /.test(line)).length, 30)
  assert.ok(chart.includes('█'))
  for (const line of chart.split('\n')) assert.ok([...line].length <= 80, line)
  const year = (await adit('usage', '--days', '365')).stdout
  assert.match(year, /^Traffic per 12 days, from the day shown$/m)
  for (const days of ['0', '366', '7abc', ''])
    assert.equal((await adit('usage', '--days', days)).code, 2, days)
})

test('revoking the key of the command itself gives a warning, also with --yes', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { adit } = createUser(t, server)
  const { stdout, stderr, code } = await adit('keys', 'revoke', server.key.id, '--yes')
  assert.deepEqual([code, stdout], [0, `Revoked ${server.key.id}.\n`])
  assert.match(stderr, /That was the key of this command \(.*Sign in with another one/)
})

test('variant B: a key reads; creating and revoking refer to the dashboard', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: 'B' } })
  const { adit } = createUser(t, server)
  assert.match((await adit('workspace')).stdout, /e\.g\. my-app\.acme\.localhost/)
  assert.match((await adit('usage')).stdout, /Requests +0\n/)
  assert.equal(parse(await adit('keys', 'list', '--json')).length, 1)
  for (const args of [
    ['keys', 'create', '--label', 'ci'],
    ['keys', 'revoke', server.key.id, '--yes'],
  ]) {
    const { code, stdout, stderr } = await adit(...args)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /does not let API keys (create|revoke) keys \(API variant B.* them in the dashboard/)
  }
  const json = await adit('keys', 'create', '--json')
  const { error, message } = JSON.parse(json.stderr)
  assert.deepEqual([json.code, json.stdout, error], [1, '', 'not_supported'])
  assert.ok(message.endsWith(`dashboard, and members request them there: ${server.url}`), message)
  const login = await adit('login', server.url, '--json')
  assert.equal(login.code, 2)
  assert.match(
    JSON.parse(login.stderr).message,
    /Missing an API key on standard input\. Without a terminal, /,
  )
})

test('login saves a key with owner-only access; precedence: flags, environment, profiles', async (t) => {
  const other = await serve(t, { engine: 'sqlite', env: { ADIT_TUNNEL_DOMAIN: 'other.example' } })
  const { own, profiles } = createUser(t)
  const adit = (args: string[], env = {}, input?: string) => run(t, args, { ...own, ...env }, input)

  const signedOut = await adit(['workspace'])
  assertFailed(signedOut, 4, /No API key\. Run `adit login`, or set ADIT_URL and ADIT_API_KEY\./)
  assert.equal(JSON.parse((await adit(['workspace', '--json'])).stderr).error, 'unauthorized')
  assert.equal((await adit(['login'])).code, 2)
  const wrong = await adit(['login', '--url', server.url], {}, 'adit_nonsense\n')
  assert.equal(wrong.code, 4)
  assert.ok(!existsSync(profiles), 'a key that does not work is not saved')

  const signed = await adit(['login', '--url', `${server.url}/`, '--json'], {}, `${server.key.token}\n`)
  assert.deepEqual(parse(signed), {
    profile: 'default',
    url: server.url,
    workspace: 'acme',
    current: true,
  })
  assert.equal(statSync(profiles).mode & 0o777, 0o600)
  assert.equal(statSync(join(profiles, '..')).mode & 0o777, 0o700)
  assert.equal((await adit(['workspace'])).code, 0)

  await adit(['login', '--url', other.url, '--profile', 'other'], {}, other.key.token)
  const readTunnelBase = async (args: string[], env = {}) =>
    parse(await adit([...args, '--json'], env)).tunnelBase
  assert.equal(await readTunnelBase(['workspace']), 'acme.other.example', 'login makes its profile current')
  assert.equal(await readTunnelBase(['workspace', '--profile', 'default']), 'acme.localhost')
  const environment = { ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  assert.equal(await readTunnelBase(['workspace'], environment), 'acme.localhost')
  assert.equal(await readTunnelBase(['workspace', '--profile', 'other'], environment), 'acme.other.example')
  assert.deepEqual(parse(await adit(['profiles', '--json'])), [
    { name: 'default', url: server.url, current: false },
    { name: 'other', url: other.url, current: true },
  ])
  assert.ok(!(await adit(['profiles'])).stdout.includes('adit_'), 'no list shows a key')
  await adit(['profiles', 'use', 'default'])
  assert.equal(await readTunnelBase(['workspace']), 'acme.localhost')

  for (const [args, env] of [
    [['workspace', '--url', other.url], {}],
    [['workspace', '--url', `${server.url}/another/tenant`], {}],
    [['workspace'], { ADIT_URL: other.url }],
    [['workspace', '--profile', 'default', '--url', other.url], { ADIT_API_KEY: other.key.token }],
  ] as const) {
    const misdirected = await adit([...args], env)
    assert.equal(misdirected.code, 2, 'a key is not sent to another server')
    assert.match(misdirected.stderr, /The API key of profile "default" is for/)
  }
  for (const env of [
    { ...environment, ADIT_API_KEY: 'adit_SECRET\nline' },
    { ...environment, ADIT_URL: 'http://me:SECRET@127.0.0.1' },
  ]) {
    const { code, stderr } = await adit(['workspace'], env)
    assert.equal(code, 2)
    assert.ok(!stderr.includes('SECRET'), stderr)
  }

  const loggedOut = await adit(['logout'])
  assert.equal(loggedOut.code, 0)
  assert.match(
    loggedOut.stderr,
    /This does not revoke the key; use `adit keys revoke`\.\nOther profiles: other\./,
  )
  const withoutCurrent = await adit(['workspace'])
  assert.equal(withoutCurrent.code, 4, 'no other profile becomes the current one')
  assert.match(withoutCurrent.stderr, /Other profiles: other\. Select one with `adit profiles use <name>`\./)
  const second = await adit(['logout'])
  assert.equal(second.code, 2, 'a second logout removes no other profile')
  assert.match(second.stderr, /Not logged in\. Other profiles: other\./)
  await adit(['profiles', 'use', 'other'])
  assert.equal(await readTunnelBase(['workspace']), 'acme.other.example')
  await adit(['logout'])
  assert.equal((await adit(['workspace'])).code, 4)
  assert.match((await adit(['logout'])).stderr, /^adit: Not logged in\.\n$/)
  assert.ok(!readFileSync(profiles, 'utf8').includes('adit_'))
  writeFileSync(profiles, 'no')
  assertFailed(await adit(['workspace']), 1, /is corrupt\. Remove it and sign in again/)
})

test('a rejected key is exit 4 and names where it is from; an unreachable server is exit 1', async (t) => {
  const { adit, own, profiles } = createUser(t, server)
  const { stdout } = await adit('keys', 'create')
  const { id } = parse(await adit('keys', 'list', '--json'))[0]
  await adit('keys', 'revoke', id, '--yes')
  const revoked = await run(t, ['keys', 'list'], {
    ...own,
    ADIT_URL: server.url,
    ADIT_API_KEY: stdout.trim(),
  })
  assertFailed(revoked, 4, /rejected the API key: .*revoked.* is from ADIT_API_KEY; set it to a valid key/)
  writeProfile(profiles, { url: server.url, apiKey: stdout.trim() })
  const profileKeys = await run(t, ['keys', 'list'], own)
  assertFailed(profileKeys, 4, /is from profile "default"; run `adit login --profile default` to replace it/)
  const url = `http://127.0.0.1:${await freePort()}`
  const unreachable = await run(t, ['keys', 'list', '--json'], {
    ...own,
    ADIT_URL: url,
    ADIT_API_KEY: stdout.trim(),
  })
  assert.deepEqual([unreachable.code, unreachable.stdout], [1, ''])
  const error = JSON.parse(unreachable.stderr)
  assert.equal(error.error, 'unreachable')
  assert.match(error.message, /Check the URL, and that the server is running\.$/)
  for (const ADIT_URL of ['ftp://adit.example.com', 'https://adit.example.com?x'])
    assert.equal((await run(t, ['keys', 'list'], { ...own, ADIT_URL, ADIT_API_KEY: 'x' })).code, 2, ADIT_URL)
  const noUrl = await run(t, ['keys', 'list'], { HOME: join(own.HOME, 'none'), ADIT_API_KEY: 'x' })
  assertFailed(noUrl, 2, /No server configured\. Run `adit login`, or set ADIT_URL\./)
})

test('concurrent logins are all saved', async (t) => {
  const { own, profiles } = createUser(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const ended = await Promise.all(
    names.map((name) => run(t, ['login', '--url', server.url, '--profile', name], own, server.key.token)),
  )
  for (const { code, stderr } of ended) assert.equal(code, 0, stderr)
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(profiles, 'utf8')).profiles).sort(), names)
})

test('counts past 2^53 are exact as JSON, and control characters are stripped', async (t) => {
  const responses: Record<string, string> = {
    '/api/v1/usage?days=30':
      '{"totalBytes":9007199254740993,"lastSeen":null,' +
      '"series":[{"day":"2026-11-15T00:00:00.000Z","bytes":9007199254740993}]}',
    '/api/v1/workspace':
      '{"slug":"x","name":"\\u001b]0;title\\u0007\\u001b[2J\\u009b","provisioned":true,"tunnelBase":"x"}',
  }
  const hostile = createServer((request, response) => response.end(responses[request.url ?? '']))
  const { own } = createUser(t)
  const env = {
    ...own,
    ADIT_URL: `http://127.0.0.1:${await listen(t, hostile)}`,
    ADIT_API_KEY: 'k',
  }
  const usage = await run(t, ['usage', '--json'], env)
  assert.match(usage.stdout, /"totalBytes":9007199254740993/)
  const { stdout } = await run(t, ['workspace'], env)
  assert.ok(stdout.startsWith('\ufffd]0;title\ufffd\ufffd[2J\ufffd (x)'), JSON.stringify(stdout))
})

test('charts have no escape sequences in a pipe, and no block characters with TERM=dumb', async (t) => {
  await fillWithUsage(server.services, server.workspace.id, 30, () => {})
  const { own, known } = createUser(t, server)
  for (const env of [{ TERM: 'dumb' }, { NO_COLOR: '1' }, {}]) {
    const { stdout } = await run(t, ['usage'], { ...own, ...known, ...env })
    assert.ok(!stdout.includes('\u001b'), JSON.stringify(env))
    assert.equal(stdout.includes('#'), 'TERM' in env)
  }
})

test('completion covers every command and flag', async (t) => {
  const { adit } = createUser(t)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await adit('completion', shell)
    assert.equal(code, 0)
    for (const word of ['keys', 'tokens-file', '--label', 'admin', 'completion'])
      assert.ok(stdout.includes(word), word)
  }
  assert.equal((await adit('completion', 'tcsh')).code, 2)
})

/** The code that prints what the shell offers for a line. */
const COMPLETERS = {
  bash(script: string, line: string) {
    const args = line.split(' ')
    const list = args.map((arg) => `"${arg}"`).join(' ')
    return `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${args.length - 1}; _adit; echo "\${COMPREPLY[*]}"`
  },
  // One per line, sorted.
  fish: (script: string, line: string) => `${script}\ncomplete -C '${line}'`,
}
for (const shell of ['bash', 'fish'] as const)
  test(`completion works in ${shell}`, async (t) => {
    if (spawnSync(shell, ['--version']).error) return t.skip(`${shell} is not installed`)
    const { stdout: script } = await createUser(t).adit('completion', shell)
    const assertOffers = (line: string, expected: string) => {
      const { stdout } = spawnSync(shell, ['-c', COMPLETERS[shell](script, line)], { encoding: 'utf8' })
      assert.deepEqual(stdout.trim().split(/\s/).sort(), expected.split(' ').sort(), line)
    }
    assertOffers('adit ke', 'keys')
    assertOffers('adit keys ', 'list create revoke')
    assertOffers('adit keys create --la', '--label')
    assertOffers('adit keys create a-name --la', '--label')
    assertOffers('adit admin us', 'user usage')
    assertOffers('adit completion b', 'bash')
    assertOffers('adit completion --', '--json --help')
  })
