// `adit tunnel --serve`: a folder through a real edge, and folders that are not served.
import assert from 'node:assert/strict'
import { mkdirSync, realpathSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createFolder } from '../../support/databases/create.ts'
import { startStandaloneEdge } from '../../support/edges/standalone-edge.ts'
import { fetchHost } from '../../support/edges/tunnels.ts'
import { assertFailed } from '../../support/processes/commands.ts'
import { run, startProcess } from '../../support/processes/process.ts'

const KEY = { ADIT_API_KEY: 'adit_key', ADIT_EDGE_URL: 'http://127.0.0.1:9' }

test('tunnel --serve publishes the files of a folder, and nothing else', async (t) => {
  const { edge, keys } = await startStandaloneEdge(t, ['acme'])
  const outside = realpathSync(createFolder(t))
  const folder = join(outside, 'public')
  mkdirSync(folder)
  writeFileSync(join(outside, 'secret.txt'), 'SECRET')
  writeFileSync(join(folder, 'hello.txt'), 'hello\n')
  writeFileSync(join(folder, 'large.bin'), Buffer.alloc(20_000_000, 'x'))
  writeFileSync(join(folder, '.env'), 'SECRET')
  const env = { ADIT_API_KEY: keys[0] as string, ADIT_EDGE_URL: edge.url, HOME: createFolder(t) }
  const tunnel = startProcess(t, ['tunnel', '--serve', 'public', '--json'], env, '', outside)
  const [line] = await tunnel.waitFor(/^\{.*"open".*\}$/m)
  const { host, target } = JSON.parse(line)
  assert.equal(target, pathToFileURL(folder).href)
  const get = (path: string, headers = {}) => fetchHost(edge, host, { path, headers })
  assert.match(String((await get('/')).body), /<a href="\.\/hello\.txt">hello\.txt<\/a>/)
  assert.equal(String((await get('/hello.txt')).body), 'hello\n')
  assert.equal((await get('/large.bin')).body.length, 20_000_000)
  const part = await get('/large.bin', { range: 'bytes=5-9' })
  assert.deepEqual([part.status, String(part.body)], [206, 'xxxxx'])
  for (const path of ['/.env', '/../secret.txt', '/%2e%2e/secret.txt', '/..%2fsecret.txt']) {
    const { status, body } = await get(path)
    assert.ok(status >= 400 && !body.includes('SECRET'), path)
  }
  // Several on one connection, and concurrent ones.
  const bodies = await Promise.all(Array.from({ length: 50 }, () => get('/hello.txt')))
  assert.ok(bodies.every(({ body }) => String(body) === 'hello\n'))
  assert.equal((await tunnel.stop('SIGINT')).code, 0)
  const text = startProcess(t, ['tunnel', '--serve', folder], env)
  await text.waitFor(new RegExp(`^Serving the files of ${folder}\\. Press Ctrl-C to stop\\.$`, 'm'), 'stderr')
})

test('tunnel --serve rejects a folder with data of Adit, also above or below it', async (t) => {
  const home = realpathSync(createFolder(t))
  const clone = join(home, 'clone')
  for (const folder of ['.config/adit', '.local/share/adit', 'clone/data/edge', 'clone/site', 'own/spool'])
    mkdirSync(join(home, folder), { recursive: true })
  writeFileSync(join(home, '.config/adit/profiles.json'), '{"profiles":{}}')
  const serve = (folder: string, env: Record<string, string> = {}) =>
    startProcess(t, ['tunnel', '--serve', folder], { ...KEY, HOME: home, ...env }, '', clone).ended
  for (const [folder, env] of [
    ['~', {}],
    ['~/.config', {}],
    ['~/.config/adit', {}],
    ['~/.local/share/adit', {}],
    ['.', {}],
    ['./data', {}],
    ['./data/edge', {}],
    ['~/own', { ADIT_EDGE_FOLDER: join(home, 'own/spool') }],
    ['~/own/spool', { ADIT_EDGE_FOLDER: join(home, 'own/spool') }],
  ] as const) {
    const { code, stdout, stderr } = await serve(folder.replace('~', home), env)
    assert.equal(code, 2, folder)
    assert.equal(stdout, '')
    assert.match(
      stderr,
      /is not served, because data of Adit would be published: \S+\. Move it, or serve a folder of/,
    )
  }
  writeFileSync(join(home, 'own.sqlite'), '')
  const other = await serve(home, {
    XDG_CONFIG_HOME: '/nowhere',
    ADIT_DATABASE_URL: `sqlite:${home}/own.sqlite`,
  })
  assert.match(other.stderr, /would be published: \S+own\.sqlite\./)
  const harmless = startProcess(t, ['tunnel', '--serve', 'site'], { ...KEY, HOME: home }, '', clone)
  await harmless.waitFor(/The edge at http:\/\/127\.0\.0\.1:9 cannot be reached/, 'stderr')
})

test('a tunnel has a target or a folder', async (t) => {
  const file = join(createFolder(t), 'file.txt')
  writeFileSync(file, '')
  for (const [args, message] of [
    [[], /Missing argument <target>, or the flag --serve <folder>\. Run `adit tunnel --help` for usage\./],
    [['3000', '--serve', '.'], /A tunnel has a target or --serve <folder>, not both\./],
    [['3000', '4000'], /Unexpected argument "4000"/],
    [['--serve', file], /There is no folder \S+file\.txt\./],
    [['--serve', '/nowhere'], /There is no folder \/nowhere\./],
    [['tcp', '5432', '--serve', '.'], /Unknown flag --serve/],
  ] as const) {
    assertFailed(await run(t, ['tunnel', ...args], KEY), 2, message, args.join(' '))
  }
})
