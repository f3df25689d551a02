// The commands that talk to the API: as real processes against a real server, in both variants.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { createServer } from 'node:http'
import type { AddressInfo } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { fillWithUsage } from '../../src/domain/demo.ts'
import { atEnd, type Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases.ts'
import { freePort } from '../support/ports.ts'
import { root, run, startProcess } from '../support/process.ts'
import { serve, type TestServer } from '../support/server.ts'
import { until } from '../support/until.ts'

/** Somebody at a machine of their own: their configuration, and who they are by the environment. */
function person(t: Test, server?: TestServer) {
  const folder = createFolder(t)
  const own = { XDG_CONFIG_HOME: folder, HOME: folder }
  const known = server ? { ADIT_URL: server.url, ADIT_API_KEY: server.key.token } : {}
  const adit = (...words: string[]) => run(t, words, { ...own, ...known })
  return { folder, own, known, adit, profiles: join(folder, 'adit/profiles.json') }
}

const parse = ({ stdout }: { stdout: string }) => JSON.parse(stdout)

test('variant A: look, mint, use and revoke, in words and as JSON', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  await fillWithUsage(server.services, server.workspace.id, 40, () => {})
  const { adit } = person(t, server)

  const shown = await adit('workspace')
  assert.deepEqual([shown.code, shown.stderr], [0, ''])
  assert.match(
    shown.stdout,
    /^Acme \(acme\)\n {2}provisioned {2}yes.*\n {2}tunnels {6}under acme\.localhost\n$/,
  )
  assert.equal(parse(await adit('workspace', '--json')).tunnelBase, 'acme.localhost')

  const made = await adit('keys', 'create', '--label', 'ci')
  assert.match(made.stdout, /^adit_[0-9A-Za-z]{49}\n$/, 'the key alone, so that KEY=$(…) works')
  assert.match(made.stderr, /Minted tok_\w+/)
  assert.equal((await server.call('GET', '/workspace', { key: made.stdout.trim() })).status, 200)
  const asJson = await adit('keys', 'create', '--json')
  assert.equal(asJson.stderr, '')
  assert.deepEqual(Object.keys(parse(asJson)), ['id', 'token', 'label', 'createdAt'])

  const listed = parse(await adit('keys', 'list', '--json'))
  assert.deepEqual(
    listed.map(({ label }: { label: string }) => label),
    ['', 'ci', 'first'],
  )
  assert.match((await adit('keys', 'list')).stdout, /^ID +LABEL +CREATED +LAST USED +STATE\ntok_/)
  const { id } = listed[1]
  const unsure = await adit('keys', 'revoke', id)
  assert.deepEqual([unsure.code, unsure.stdout], [2, ''])
  assert.match(unsure.stderr, /Confirm it with --yes/)
  assert.deepEqual(parse(await adit('keys', 'revoke', id, '--yes', '--json')), { id, revoked: true })
  const again = await adit('keys', 'revoke', id, '--yes')
  assert.equal(again.code, 1)
  assert.match(again.stderr, /There is no active key tok_\w+\. "adit keys list" shows/)

  const usage = parse(await adit('usage', '--days', '7', '--json'))
  assert.equal(usage.series.length, 7)
  const chart = (await adit('usage')).stdout
  assert.match(
    chart,
    /^The last 30 days, in UTC\n {2}bytes +[\d.]+ [KMG]iB\n {2}peak of tunnels +\d+\n {2}tunnel events +[\d,]+\n/,
  )
  assert.equal(chart.split('\n').filter((line) => /^\d{4}-\d\d-\d\d /.test(line)).length, 30)
  assert.ok(chart.includes('█'))
  for (const line of chart.split('\n')) assert.ok([...line].length <= 80, line)
  const year = (await adit('usage', '--days', '365')).stdout
  assert.match(year, /Each line is 12 days/)
  for (const days of ['0', '366', '7abc', ''])
    assert.equal((await adit('usage', '--days', days)).code, 2, days)
})

test('variant B: reads; what only people can do is said with where', async (t) => {
  const server = await serve(t, { engine: 'sqlite', env: { ADIT_API_VARIANT: 'B' } })
  const { adit } = person(t, server)
  assert.match((await adit('workspace')).stdout, /such as my-app\.acme\.localhost/)
  assert.match((await adit('usage')).stdout, /requests +0\n/)
  assert.equal(parse(await adit('keys', 'list', '--json')).length, 1)
  for (const words of [
    ['keys', 'create', '--label', 'ci'],
    ['keys', 'revoke', server.key.id, '--yes'],
  ]) {
    const { code, stdout, stderr } = await adit(...words)
    assert.deepEqual([code, stdout], [1, ''])
    assert.match(stderr, /keys cannot (create|revoke) keys \(variant B.*dashboard: http/)
  }
})

test('signing in keeps a key that works, for its owner alone; flags count before the environment, that before a profile', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const other = await serve(t, { engine: 'sqlite', env: { ADIT_TUNNEL_DOMAIN: 'other.example' } })
  const { own, profiles } = person(t)
  const adit = (words: string[], env = {}, input?: string) => run(t, words, { ...own, ...env }, input)

  const nobody = await adit(['workspace'])
  assert.equal(nobody.code, 4)
  assert.match(nobody.stderr, /There is no API key to use\. Run "adit login"/)
  assert.equal(JSON.parse((await adit(['workspace', '--json'])).stderr).error, 'unauthorized')
  assert.equal((await adit(['login'])).code, 2)
  const wrong = await adit(['login', '--url', server.url], {}, 'adit_nonsense\n')
  assert.equal(wrong.code, 4)
  assert.ok(!existsSync(profiles), 'a key that does not work is not kept')

  const signed = await adit(['login', '--url', `${server.url}/`, '--json'], {}, `${server.key.token}\n`)
  assert.deepEqual(parse(signed), { profile: 'default', url: server.url, workspace: 'acme' })
  assert.equal(statSync(profiles).mode & 0o777, 0o600)
  assert.equal(statSync(join(profiles, '..')).mode & 0o777, 0o700)
  assert.equal((await adit(['workspace'])).code, 0)

  await adit(['login', '--url', other.url, '--profile', 'other'], {}, other.key.token)
  const baseOf = async (words: string[], env = {}) => parse(await adit([...words, '--json'], env)).tunnelBase
  assert.equal(await baseOf(['workspace']), 'acme.other.example', 'the one signed in to last')
  assert.equal(await baseOf(['workspace', '--profile', 'default']), 'acme.localhost')
  const environment = { ADIT_URL: server.url, ADIT_API_KEY: server.key.token }
  assert.equal(await baseOf(['workspace'], environment), 'acme.localhost')
  assert.equal(await baseOf(['workspace', '--profile', 'other'], environment), 'acme.other.example')
  assert.deepEqual(parse(await adit(['profiles', '--json'])), [
    { name: 'default', url: server.url, current: false },
    { name: 'other', url: other.url, current: true },
  ])
  assert.ok(!(await adit(['profiles'])).stdout.includes('adit_'), 'no list shows a key')
  await adit(['profiles', 'use', 'default'])
  assert.equal(await baseOf(['workspace']), 'acme.localhost')

  for (const [words, env] of [
    [['workspace', '--url', other.url], {}],
    [['workspace', '--url', `${server.url}/another/tenant`], {}],
    [['workspace'], { ADIT_URL: other.url }],
    [['workspace', '--profile', 'default', '--url', other.url], { ADIT_API_KEY: other.key.token }],
  ] as const) {
    const astray = await adit([...words], env)
    assert.equal(astray.code, 2, 'a key is not shown to a server that it is not for')
    assert.match(astray.stderr, /The key of the profile is for/)
  }
  for (const env of [
    { ...environment, ADIT_API_KEY: 'adit_SECRET\nline' },
    { ...environment, ADIT_URL: 'http://me:SECRET@127.0.0.1' },
  ]) {
    const { code, stderr } = await adit(['workspace'], env)
    assert.equal(code, 2)
    assert.ok(!stderr.includes('SECRET'), stderr)
  }

  assert.equal((await adit(['logout'])).code, 0)
  assert.equal(await baseOf(['workspace']), 'acme.other.example')
  await adit(['logout'])
  assert.equal((await adit(['workspace'])).code, 4)
  assert.equal((await adit(['logout'])).code, 2)
  assert.ok(!readFileSync(profiles, 'utf8').includes('adit_'))
  writeFileSync(profiles, 'no')
  const damaged = await adit(['workspace'])
  assert.equal(damaged.code, 1)
  assert.match(damaged.stderr, /is damaged\. Remove it and sign in again/)
})

test('a key that was revoked is exit 4, a server that is not there exit 1, each with what to do', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { adit, own } = person(t, server)
  const { stdout } = await adit('keys', 'create')
  const { id } = parse(await adit('keys', 'list', '--json'))[0]
  await adit('keys', 'revoke', id, '--yes')
  const revoked = await run(t, ['keys', 'list'], {
    ...own,
    ADIT_URL: server.url,
    ADIT_API_KEY: stdout.trim(),
  })
  assert.equal(revoked.code, 4)
  assert.match(revoked.stderr, /This API key was revoked\. Use another one\. Run "adit login"/)
  const url = `http://127.0.0.1:${await freePort()}`
  const away = await run(t, ['keys', 'list', '--json'], {
    ...own,
    ADIT_URL: url,
    ADIT_API_KEY: stdout.trim(),
  })
  assert.deepEqual([away.code, away.stdout], [1, ''])
  const said = JSON.parse(away.stderr)
  assert.equal(said.error, 'unreachable')
  assert.match(said.message, /cannot be reached.*Is the server running, and is the address right\?/)
  const nowhere = await run(t, ['keys', 'list'], { ...own, ADIT_URL: 'adit.example.com', ADIT_API_KEY: 'x' })
  assert.equal(nowhere.code, 2)
})

test('many who sign in at once are all remembered', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  const { own, profiles } = person(t)
  const names = ['a', 'b', 'c', 'd', 'e', 'f']
  const ended = await Promise.all(
    names.map((name) => run(t, ['login', '--url', server.url, '--profile', name], own, server.key.token)),
  )
  for (const { code, stderr } of ended) assert.equal(code, 0, stderr)
  assert.deepEqual(Object.keys(JSON.parse(readFileSync(profiles, 'utf8')).profiles).sort(), names)
})

test('counts past 2^53 are exact as JSON, and what a hostile server sends does not reach the terminal', async (t) => {
  const answers: Record<string, string> = {
    '/api/v1/usage?days=30':
      '{"totalBytes":9007199254740993,"lastSeen":null,"series":[{"day":"2026-11-15T00:00:00.000Z","bytes":9007199254740993}]}',
    '/api/v1/workspace':
      '{"slug":"x","name":"\\u001b]0;title\\u0007\\u001b[2J\\u009b","provisioned":true,"tunnelBase":"x"}',
  }
  const hostile = createServer((request, response) => response.end(answers[request.url ?? ''])).listen(
    0,
    '127.0.0.1',
  )
  await once(hostile, 'listening')
  atEnd(t, () => hostile.close())
  const { own } = person(t)
  const env = {
    ...own,
    ADIT_URL: `http://127.0.0.1:${(hostile.address() as AddressInfo).port}`,
    ADIT_API_KEY: 'k',
  }
  const usage = await run(t, ['usage', '--json'], env)
  assert.match(usage.stdout, /"totalBytes":9007199254740993/)
  const { stdout } = await run(t, ['workspace'], env)
  assert.ok(stdout.startsWith('\ufffd]0;title\ufffd\ufffd[2J\ufffd (x)'), JSON.stringify(stdout))
})

/** A command at a terminal: `script` gives it one, and types what a person would. */
function atTerminal(t: Test, words: string[], env: Record<string, string>) {
  const command = [process.execPath, join(root, 'bin/adit.js'), ...words].map((word) => `'${word}'`).join(' ')
  const child = spawn('script', ['-qefc', command, '/dev/null'], {
    env: { PATH: process.env.PATH ?? '', TERM: 'xterm', ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  atEnd(t, () => child.kill('SIGKILL'))
  let seen = ''
  child.stdout.on('data', (chunk) => {
    seen += chunk
  })
  const ended = new Promise<number | null>((resolve) => child.once('close', resolve))
  return {
    seen: () => seen,
    ended,
    async answer(question: string, text: string) {
      await until(question, () => seen.includes(question), 10_000)
      child.stdin.write(text)
    },
  }
}

test('at a terminal: it asks for address and key, which is not shown, and before it revokes', async (t) => {
  if (!existsSync('/usr/bin/script')) return t.skip('no "script" to make a terminal with')
  const server = await serve(t, { engine: 'sqlite' })
  const { own } = person(t)
  const login = atTerminal(t, ['login'], own)
  await login.answer('Address of the server [http://127.0.0.1:8080]: ', `${server.url}\r`)
  await login.answer('API key (not shown): ', `${server.key.token}\r`)
  assert.equal(await login.ended, 0)
  assert.match(login.seen(), /Signed in at http/)
  assert.ok(!login.seen().includes(server.key.token), 'the key was shown')

  const { id } = (await server.post('/tokens', { label: 'old laptop' })).json
  const unsure = atTerminal(t, ['keys', 'revoke', id], own)
  await unsure.answer(`Revoke the key "old laptop" (${id}), for good and at once? [y/N] `, '\r')
  assert.equal(await unsure.ended, 1)
  assert.match(unsure.seen(), /Nothing was revoked/)
  const interrupted = atTerminal(t, ['keys', 'revoke', id], own)
  await interrupted.answer('[y/N] ', '\u0003')
  assert.equal(await interrupted.ended, 1)
  assert.match(interrupted.seen(), /Given up/)
  const mumbled = atTerminal(t, ['keys', 'revoke', id], own)
  await mumbled.answer('[y/N] ', 'maybe\r')
  assert.equal(await mumbled.ended, 1)
  const sure = atTerminal(t, ['keys', 'revoke', id], own)
  await sure.answer('[y/N] ', 'y\r')
  assert.equal(await sure.ended, 0)
  assert.match(sure.seen(), new RegExp(`Revoked ${id}`))
  // Whatever the terminal was told to erase was drawn again after it.
  const afterErasing = sure.seen().slice(sure.seen().lastIndexOf('\u001b[0J'))
  assert.ok(!sure.seen().includes('\u001b[0J') || afterErasing.includes('[y/N]'), JSON.stringify(sure.seen()))
})

test('nothing is coloured or drawn where a terminal cannot, or a pipe reads', async (t) => {
  const server = await serve(t, { engine: 'sqlite' })
  await fillWithUsage(server.services, server.workspace.id, 30, () => {})
  const { own, known } = person(t, server)
  for (const env of [{ TERM: 'dumb' }, { NO_COLOR: '1' }, {}]) {
    const { stdout } = await run(t, ['usage'], { ...own, ...known, ...env })
    assert.ok(!stdout.includes('\u001b'), JSON.stringify(env))
    assert.equal(stdout.includes('#'), 'TERM' in env)
  }
})

test('completion knows every command and option, and bash takes it', async (t) => {
  const { adit } = person(t)
  for (const shell of ['bash', 'zsh', 'fish']) {
    const { code, stdout } = await adit('completion', shell)
    assert.equal(code, 0)
    for (const word of ['keys', 'tokens-file', '--label', 'admin', 'completion'])
      assert.ok(stdout.includes(word), word)
  }
  assert.equal((await adit('completion', 'tcsh')).code, 2)
  const { stdout: script } = await adit('completion', 'bash')
  const complete = (line: string) => {
    const words = line.split(' ')
    const list = words.map((word) => `"${word}"`).join(' ')
    const code = `${script}\nCOMP_WORDS=(${list}); COMP_CWORD=${words.length - 1}; _adit; echo "\${COMPREPLY[*]}"`
    return new Promise<string>((resolve) => {
      const child = spawn('bash', ['-c', code], { stdio: ['ignore', 'pipe', 'inherit'] })
      let out = ''
      child.stdout.on('data', (chunk) => {
        out += chunk
      })
      child.once('close', () => resolve(out.trim()))
    })
  }
  assert.equal(await complete('adit ke'), 'keys')
  assert.equal(await complete('adit keys '), 'list create revoke')
  assert.equal(await complete('adit keys create --la'), '--label')
  assert.equal(await complete('adit admin us'), 'user usage')
  assert.equal(await complete('adit completion '), '--json --help bash zsh fish')
})

test('help comes within 150 ms', async (t) => {
  // The quickest of many: other tests run beside this one.
  let best = Number.POSITIVE_INFINITY
  for (const began = performance.now(); best >= 150 && performance.now() - began < 30_000; ) {
    const asked = performance.now()
    await startProcess(t, ['--help'], {}).ended
    best = Math.min(best, performance.now() - asked)
  }
  t.diagnostic(`${Math.round(best)} ms`)
  assert.ok(best < 150, `${best} ms`)
})
