// /install.sh with real shells and curl, an empty home folder and no clone.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { EXECUTABLES } from '../../src/lib/client-package.ts'
import { createFolder } from '../support/databases/create.ts'
import { type Plane, startPlane } from '../support/edges/tunnels.ts'
import { root } from '../support/processes/process.ts'
import { assertClientWorks } from './client-use.ts'

type Test = Parameters<typeof createFolder>[0]

const TOOLS = [
  'uname',
  'sed',
  'mktemp',
  'rm',
  'mv',
  'ln',
  'mkdir',
  'chmod',
  'cut',
  'tar',
  'gzip',
  'env',
  'curl',
]
const shells = [['dash'], ['busybox', 'sh'], ['bash', '--posix']].filter(
  ([program = '']) => spawnSync(program, ['-c', 'true']).error === undefined,
)

before(() => {
  execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')])
})

const which = (name: string) => execFileSync('sh', ['-c', `command -v ${name}`], { encoding: 'utf8' }).trim()

/** A PATH with these programs only. */
function createPath(t: Test, programs: Record<string, string> = {}): string {
  const folder = createFolder(t)
  for (const name of [...TOOLS, 'sha256sum']) symlinkSync(which(name), join(folder, name))
  for (const [name, text] of Object.entries(programs))
    writeFileSync(join(folder, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
  return folder
}

/** As users run it, except for the PATH: `curl -fsSL <url>/install.sh | sh`. */
function install(url: string, home: string, path: string, shell = ['dash']) {
  const script = execFileSync('curl', ['-fsSL', `${url}/install.sh`], { encoding: 'utf8' })
  const [program = '', ...args] = shell
  const env = { HOME: home, PATH: path }
  return spawnSync(which(program), args, { input: script, env, encoding: 'utf8' })
}

const nodeLauncher = `exec ${process.execPath} "$@"`

async function startWithExecutables(t: Test, files: Record<string, Buffer>): Promise<Plane> {
  const folder = createFolder(t)
  for (const [name, content] of Object.entries(files)) writeFileSync(join(folder, name), content)
  return startPlane(t, ['acme'], { ADIT_EXECUTABLES: folder })
}

for (const shell of shells)
  test(`${shell.join(' ')}: the package of the client is installed, signs in and opens a tunnel`, async (t) => {
    const plane = await startWithExecutables(t, {})
    const home = createFolder(t)
    const path = createPath(t, { node: nodeLauncher })
    const { status, stdout, stderr } = install(plane.url, home, path, shell)
    assert.equal(status, 0, stderr)
    assert.match(stdout, /Installed adit 0\.1\.0/)
    assert.match(stdout, /is not on your PATH[\s\S]*export PATH="\$HOME\/\.local\/bin:\$PATH"/)
    assert.ok(stdout.includes(`adit login ${plane.url}\n`), stdout)
    assert.deepEqual(readdirSync(home), ['.local'])
    const env = { HOME: home, PATH: `${home}/.local/bin:${path}` }
    await assertClientWorks(t, plane, { command: [join(home, '.local/bin/adit')], env })
    const again = install(plane.url, home, env.PATH, shell)
    assert.equal(again.status, 0, again.stderr)
    assert.doesNotMatch(again.stdout, /PATH/)
  })

test('an executable is preferred, and Node is not needed for it', async (t) => {
  const program = Buffer.from('#!/bin/sh\necho 9.9.9\n')
  const executables = Object.fromEntries(EXECUTABLES.map((name) => [name, gzipSync(program)]))
  const plane = await startWithExecutables(t, executables)
  const home = createFolder(t)
  const { status, stdout, stderr } = install(plane.url, home, createPath(t))
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Installed adit 9\.9\.9/)
  assert.equal(execFileSync(join(home, '.local/bin/adit'), { encoding: 'utf8' }), '9.9.9\n')
})

test('what is missing is named, and nothing is installed', async (t) => {
  const broken = Object.fromEntries(EXECUTABLES.map((name) => [name, gzipSync('#!/bin/sh\nexit 1\n')]))
  const [plane, withBroken] = [await startWithExecutables(t, {}), await startWithExecutables(t, broken)]
  const other = 'case "$1" in -s) echo Plan9 ;; *) echo mips ;; esac'
  const cases: [Plane, Record<string, string>, RegExp][] = [
    [
      plane,
      {},
      /no executable for Linux on \w+\. So the client needs Node 20 or later, which is not installed/,
    ],
    [plane, { node: 'echo v18.20.0' }, /needs Node 20 or later, but this is Node v18\.20\.0/],
    [withBroken, { uname: other }, /no executable for Plan9 on mips\. So the client needs Node 20/],
    [withBroken, {}, /does not run on this system\. Nothing was installed/],
    [plane, { node: nodeLauncher, curl: 'exit 22' }, /The download failed\. Nothing was installed/],
    [plane, { node: nodeLauncher, curl: 'echo damaged >"$3"' }, /checksum is wrong\. Nothing was installed/],
  ]
  for (const [server, programs, message] of cases) {
    const home = createFolder(t)
    const path = createPath(t)
    for (const [name, text] of Object.entries(programs)) {
      execFileSync('rm', ['-f', join(path, name)])
      writeFileSync(join(path, name), `#!/bin/sh\n${text}\n`, { mode: 0o755 })
    }
    const { status, stderr } = install(server.url, home, path)
    assert.equal(status, 1, stderr)
    assert.match(stderr, message)
    assert.deepEqual(readdirSync(home), [])
  }
})

test('the script has the public URL, quoted, whatever the Host header says', async (t) => {
  const baseUrl = "https://adit.example.com/it's;$(id)"
  const folder = createFolder(t)
  mkdirSync(join(folder, 'none'))
  const plane = await startPlane(t, [], { ADIT_BASE_URL: baseUrl, ADIT_EXECUTABLES: join(folder, 'none') })
  const url = `http://127.0.0.1:${plane.env.ADIT_PORT}/install.sh`
  const script = execFileSync('curl', ['-fsS', '-H', 'Host: evil.example', url], { encoding: 'utf8' })
  assert.doesNotMatch(script, /evil\.example|127\.0\.0\.1/)
  const quoted = execFileSync('sh', ['-c', `${/^server=.*$/m.exec(script)?.[0]}; printf %s "$server"`], {
    encoding: 'utf8',
  })
  assert.equal(quoted, baseUrl)
  if (existsSync('/usr/bin/shellcheck'))
    execFileSync('shellcheck', ['--severity=warning', '-'], { input: script })
})
