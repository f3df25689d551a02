// The executable of this machine, in a root that has nothing but the shared libraries it needs.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, copyFileSync, linkSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openBrowser, PASSWORD, signIn } from '../support/accounts/users.ts'
import { atEnd } from '../support/cleanup.ts'
import { fetchHost, startLocal } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'
import { root } from '../support/processes/process.ts'
import { startProgram } from '../support/processes/program.ts'
import { workersOf } from '../support/processes/workers.ts'
import { until } from '../support/until.ts'

/** The path of the new root, with the executable as /adit. */
function createRoot(t: TestContext): string {
  const platform = `linux-${process.arch}`
  execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')])
  execFileSync(process.execPath, [join(root, 'scripts/executables.ts'), platform], { stdio: 'inherit' })
  const executable = join(root, 'executables', `adit-${platform}`)
  // Beside the executable, which is linked instead of copied.
  const folder = mkdtempSync(join(root, 'executables/root-'))
  atEnd(t, () => rmSync(folder, { recursive: true }))
  linkSync(executable, join(folder, 'adit'))
  for (const [library = ''] of execFileSync('ldd', [executable], { encoding: 'utf8' }).matchAll(/\/\S+/g)) {
    mkdirSync(join(folder, dirname(library)), { recursive: true })
    copyFileSync(library, join(folder, library))
  }
  for (const name of ['home', 'tmp']) mkdirSync(join(folder, name))
  chmodSync(join(folder, 'tmp'), 0o777)
  return folder
}

test('the executable runs server with workers, edge and tunnel without Node', async (t) => {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return t.skip('chroot needs root on Linux')
  const folder = createRoot(t)
  const env = { PATH: process.env.PATH ?? '', HOME: '/home', ADIT_LOG_LEVEL: 'warn' }
  const run = (...args: string[]) =>
    execFileSync('chroot', [folder, '/adit', ...args], { env, encoding: 'utf8' }).trim()
  const start = async (args: string[], settings: Record<string, string>, pattern: RegExp) => {
    const program = startProgram(t, 'chroot', [folder, '/adit', ...args], { env: { ...env, ...settings } })
    await program.waitFor(pattern)
    return JSON.parse((/^\{.*\}$/m.exec(program.output()) as RegExpExecArray)[0])
  }
  assert.throws(() => execFileSync('chroot', [folder, 'node', '--version'], { stdio: 'pipe' }))

  const settings = { ADIT_PORT: String(await freePort()), ADIT_WORKERS: '2' }
  const { url, token, setupLink, pid } = await start(['serve', '--json'], settings, /^\{"url".*\}$/m)
  await until('both workers run', () => workersOf(pid).length === 2)
  const page = await (await fetch(url)).text()
  const [script] = /assets\/index-[\w-]+\.js/.exec(page) ?? assert.fail('the page has no script')
  for (const path of [script, 'docs', 'docs/scalar.js', 'install.sh', 'install/adit-cli.tgz'])
    assert.equal((await fetch(`${url}/${path}`)).status, 200, path)

  const link = new URL(setupLink).hash.slice(1)
  const account = { link, email: 'ann@example.com', name: 'Ann', password: PASSWORD }
  assert.equal((await openBrowser(url).post('/links/redeem', account)).status, 200)
  const browser = openBrowser(url)
  assert.equal((await signIn(browser, 'ann@example.com')).status, 200)
  assert.equal((await browser.get('/session')).json.user.name, 'Ann')

  const edgeKey = run('admin', 'edge', 'create', 'edge-1')
  const edgePort = await freePort()
  const access = { ADIT_URL: url, ADIT_EDGE_KEY: edgeKey, ADIT_EDGE_PORT: String(edgePort) }
  const edge = await start(['edge', '--json'], access, /^\{"url".*\}$/m)
  const local = await startLocal(t)
  const tunnel = ['tunnel', String(local.port), '--name', 'app', '--edge', edge.url, '--json']
  const { host } = await start(tunnel, { ADIT_URL: url, ADIT_API_KEY: token }, /"event":"open"/)
  const { status, body } = await fetchHost({ port: edgePort }, host, { path: '/bytes/100000' })
  assert.deepEqual([status, body.length], [200, 100_000])
})
