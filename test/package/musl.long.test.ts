// /install.sh in a root like that of Alpine: busybox and no glibc where programs look for it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { copyFileSync, linkSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs'
import { basename, join } from 'node:path'
import { test } from 'node:test'
import { gzipSync } from 'node:zlib'
import { EXECUTABLES } from '../../src/lib/client-package.ts'
import type { Test } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { assertClientWorks } from './client-use.ts'
import { listLibraries } from './executable.ts'
import { startWithExecutables } from './install-script.ts'

const CHROOT = '/usr/sbin/chroot'

/** Debian has a busybox without shared libraries in the package busybox-static. */
const isBusyboxStatic = spawnSync('ldd', ['/bin/busybox']).status === 1
const skip =
  process.platform !== 'linux' || process.getuid?.() !== 0
    ? 'chroot needs root on Linux'
    : !isBusyboxStatic && 'busybox without shared libraries is not installed (apt-get install busybox-static)'

function createRoot(t: Test): string {
  const folder = createFolder(t)
  for (const name of ['bin', 'dev', 'home', 'opt', 'tmp', 'usr']) mkdirSync(join(folder, name))
  copyFileSync('/bin/busybox', join(folder, 'bin/busybox'))
  for (const name of ['null', 'tty']) writeFileSync(join(folder, 'dev', name), '')
  assert.equal(spawnSync(CHROOT, [folder, '/bin/busybox', '--install', '/bin']).status, 0)
  mkdirSync(join(folder, 'usr/bin'))
  linkSync(join(folder, 'bin/busybox'), join(folder, 'usr/bin/env'))
  return folder
}

/** Node, whose npm packages need glibc, with a glibc that other programs do not find. */
function addNode(folder: string): void {
  const libraries = listLibraries(process.execPath)
  for (const path of [process.execPath, ...libraries]) copyFileSync(path, join(folder, 'opt', basename(path)))
  const loader = basename(libraries.find((path) => /\/ld-linux/.test(path)) ?? assert.fail('no loader'))
  const launcher = `#!/bin/sh\nexec /opt/${loader} --library-path /opt /opt/node "$@"\n`
  writeFileSync(join(folder, 'bin/node'), launcher, { mode: 0o755 })
}

test('without glibc, the package is installed with busybox alone, and Node is asked for', {
  skip,
}, async (t) => {
  const executables = Object.fromEntries(EXECUTABLES.map((name) => [name, gzipSync('not for this system')]))
  const plane = await startWithExecutables(t, executables)
  const folder = createRoot(t)
  const env = { HOME: '/home', PATH: '/bin' }
  const install = () =>
    spawnSync(CHROOT, [folder, '/bin/sh', '-c', `wget -qO- ${plane.url}/install.sh | sh`], {
      env,
      encoding: 'utf8',
    })
  const { status, stderr } = install()
  assert.equal(status, 1)
  assert.match(
    stderr,
    /needs glibc, .* has musl\)\. So the client needs Node 20 .*Install Node and run this again/,
  )
  assert.deepEqual(readdirSync(join(folder, 'home')), [])

  addNode(folder)
  const installed = install()
  assert.equal(installed.status, 0, installed.stderr)
  assert.match(installed.stdout, /Installed adit 0\.1\.0: \/home\/\.local\/bin\/adit/)
  await assertClientWorks(t, plane, { command: [CHROOT, folder, '/home/.local/bin/adit'], env })
})
