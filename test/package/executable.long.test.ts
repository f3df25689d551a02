// Runs the executable for this machine, in a root that has only the shared libraries it needs, and as
// installed by /install.sh. Of the executables for other platforms, only the file headers are checked.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import {
  chmodSync,
  copyFileSync,
  linkSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
} from 'node:fs'
import { dirname, join } from 'node:path'
import { type TestContext, test } from 'node:test'
import { openBrowser, PASSWORD, signIn } from '../support/accounts/users.ts'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { fetchHost, startLocal, startPlane } from '../support/edges/tunnels.ts'
import { freePort } from '../support/processes/ports.ts'
import { startProgram } from '../support/processes/program.ts'
import { workersOf } from '../support/processes/workers.ts'
import { until } from '../support/until.ts'
import { assertClientWorks } from './client-use.ts'
import { buildExecutable, buildFor, executablesFolder, listLibraries } from './executable.ts'
import { createPath, install } from './install-script.ts'

/** The path of the new root, with the executable as /adit. */
function createRoot(t: TestContext): string {
  const executable = buildExecutable()
  // Beside the executable, which is linked instead of copied.
  const folder = mkdtempSync(join(executablesFolder, 'root-'))
  atEnd(t, () => rmSync(folder, { recursive: true }))
  linkSync(executable, join(folder, 'adit'))
  for (const library of listLibraries(executable)) {
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

test('an executable that /install.sh has installed signs in and opens a tunnel without Node', async (t) => {
  if (process.platform !== 'linux') return t.skip('there are no executables for this system')
  buildExecutable()
  const plane = await startPlane(t, ['acme'], { ADIT_EXECUTABLES: executablesFolder })
  const [home, path] = [createFolder(t), createPath(t)]
  const { status, stdout, stderr } = install(plane.url, home, path)
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Installed adit 0\.1\.0/)
  assert.deepEqual([readdirSync(home), readdirSync(join(home, '.local'))], [['.local'], ['bin']])
  await assertClientWorks(t, plane, {
    command: [join(home, '.local/bin/adit')],
    env: { HOME: home, PATH: path },
  })
})

/**
 * The machine field of the file header: at offset 18 in ELF, 4 bytes after the start of `PE\0\0` on Windows.
 */
const MACHINES = { 'linux-x64': 0x3e, 'linux-arm64': 0xb7, 'win-x64': 0x8664 }

/**
 * A marker in the binary of Node. It ends with 0; building an executable with an application sets it to 1.
 */
const FUSE = 'NODE_SEA_FUSE_fce680ab2cc467b6e072b8b5df1996b2:1'

test('executables of other platforms are built on this machine', () => {
  const others = Object.entries(MACHINES).filter(([platform]) => platform !== `linux-${process.arch}`)
  buildExecutable()
  buildFor(...others.map(([platform]) => platform))
  for (const [platform, machine] of others) {
    const isWindows = platform.startsWith('win')
    const content = readFileSync(join(executablesFolder, `adit-${platform}${isWindows ? '.exe' : ''}`))
    const header = isWindows ? content.readUInt32LE(0x3c) : 0
    assert.equal(content.toString('latin1', header, header + 4), isWindows ? 'PE\0\0' : '\x7fELF', platform)
    assert.equal(content.readUInt16LE(header + (isWindows ? 4 : 18)), machine, platform)
    for (const text of [FUSE, 'dist/adit-cli.tgz']) assert.ok(content.includes(text), `${platform}: ${text}`)
  }
})
