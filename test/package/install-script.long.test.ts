// /install.sh with real shells, curl and wget, an empty home folder and no clone.
import assert from 'node:assert/strict'
import { execFileSync, spawnSync } from 'node:child_process'
import { existsSync, mkdirSync, readdirSync, symlinkSync } from 'node:fs'
import { join } from 'node:path'
import { before, test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { clientCommands } from '../../src/lib/client-commands.ts'
import { EXECUTABLES } from '../../src/lib/client-package.ts'
import { createFolder } from '../support/databases/create.ts'
import { type Plane, startPlane } from '../support/edges/tunnels.ts'
import { root } from '../support/processes/process.ts'
import { assertClientWorks } from './client-use.ts'
import { createPath, install, nodeLauncher, startWithExecutables, which } from './install-script.ts'

/** As one whose libraries are missing. */
const broken = Object.fromEntries(EXECUTABLES.map((name) => [name, gzipSync('#!/bin/sh\nexit 127\n')]))
const shells = [['dash'], ['busybox', 'sh'], ['bash', '--posix']].filter(
  ([program = '']) => spawnSync(program, ['-c', 'true']).error === undefined,
)

before(() => {
  execFileSync(process.execPath, [join(root, 'scripts/bundle.ts')])
})

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

test('the command that servers show makes adit available in the same shell', async (t) => {
  const plane = await startWithExecutables(t, {})
  const sh = which('sh')
  const path = createPath(t, { node: nodeLauncher, sh: `exec ${sh} "$@"` })
  const pasted = `${clientCommands(plane.url).install}\nadit --version`
  const { status, stdout, stderr } = spawnSync(sh, ['-c', pasted], {
    env: { HOME: createFolder(t), PATH: path },
    encoding: 'utf8',
  })
  assert.equal(status, 0, stderr)
  assert.match(stdout, /\n0\.1\.0\n$/)
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

for (const program of ['wget', 'busybox'].filter((name) => spawnSync(name, ['--help']).error === undefined))
  test(`wget of ${program} is used where curl is missing`, async (t) => {
    const plane = await startWithExecutables(t, {})
    const home = createFolder(t)
    const path = createPath(t, { node: nodeLauncher, curl: undefined })
    symlinkSync(which(program), join(path, 'wget'))
    const { status, stdout, stderr } = install(plane.url, home, path)
    assert.equal(status, 0, stderr)
    assert.match(stdout, /Installed adit 0\.1\.0/)
  })

test('the package is installed where the executable does not run, if there is Node', async (t) => {
  const plane = await startWithExecutables(t, broken)
  const home = createFolder(t)
  const { status, stdout, stderr } = install(plane.url, home, createPath(t, { node: nodeLauncher }))
  assert.equal(status, 0, stderr)
  assert.match(stdout, /Installed adit 0\.1\.0/)
  assert.deepEqual(readdirSync(join(home, '.local/lib')), ['adit-cli'])
})

test('what is missing is named, and nothing is installed', async (t) => {
  const [plane, withBroken] = [await startWithExecutables(t, {}), await startWithExecutables(t, broken)]
  const other = 'case "$1" in -s) echo Plan9 ;; *) echo mips ;; esac'
  const cases: [Plane, Record<string, string | undefined>, RegExp][] = [
    [
      plane,
      {},
      /no executable for Linux on \w+\. So the client needs Node 20 or later, which is not installed/,
    ],
    [plane, { node: 'echo v18.20.0' }, /needs Node 20 or later, but this is Node v18\.20\.0/],
    [withBroken, { uname: other }, /no executable for Plan9 on mips\. So the client needs Node 20/],
    [
      withBroken,
      {},
      /does not run on this system: it needs glibc 2\.28 .* Node 20 or later, which is not installed/,
    ],
    [
      plane,
      { node: nodeLauncher, curl: 'exit 22' },
      /The download failed\. Nothing was installed\. Check that this machine can reach http:.* run this again/,
    ],
    [plane, { node: nodeLauncher, curl: undefined }, /Neither curl nor wget is installed\. Install one/],
    [plane, { node: nodeLauncher, curl: 'echo damaged >"$3"' }, /checksum is wrong\. Nothing was installed/],
  ]
  for (const [server, programs, message] of cases) {
    const home = createFolder(t)
    const { status, stderr } = install(server.url, home, createPath(t, programs))
    assert.equal(status, 1, stderr)
    assert.match(stderr, message)
    assert.deepEqual(readdirSync(home), [])
  }
  const { status, stderr } = install(plane.url, undefined, createPath(t))
  assert.deepEqual(
    [status, stderr],
    [1, 'adit: HOME is not set. Set it to your home folder, and run this again.\n'],
  )
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
