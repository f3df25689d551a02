// Checks of `adit admin doctor` of disks and files, and how checks are run.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { ok, runChecks } from '../../../src/server/doctor/check.ts'
import { checkConfiguration } from '../../../src/server/doctor/configuration.ts'
import { checkDisks } from '../../../src/server/doctor/disk.ts'
import { checkFiles, checkSecretFile } from '../../../src/server/doctor/files.ts'
import { createFolder } from '../../support/databases/create.ts'
import { mountSmallDisk } from '../../support/databases/small-disk.ts'
import { pluck } from '../../support/pluck.ts'

test('disk: little free space is a problem', async (t) => {
  const disk = mountSmallDisk(t, '12m')
  if (!disk) return t.skip('only root can mount a small disk')
  const [small] = await checkDisks([{ path: disk, use: 'database', isDatabase: true }])
  assert.equal(small?.status, 'problem')
  assert.equal(small?.message, `${disk} (database) has 12 MiB of free disk space.`)
  assert.match(small?.remedy ?? '', /add disk space/)
  const larger = mountSmallDisk(t, '500m') as string
  const [some] = await checkDisks([{ path: larger, use: 'database', isDatabase: true }])
  assert.equal(some?.status, 'warning')
})

test('disk: a folder that cannot be written is a problem, and one that does not exist is left out', async (t) => {
  const folder = createFolder(t)
  const use = 'usage spool of an edge'
  const none = await checkDisks([{ path: join(folder, 'none'), use, isDatabase: false }])
  assert.equal(none[0]?.status, 'skipped')
  const disk = mountSmallDisk(t, '2g')
  if (disk) execFileSync('mount', ['-o', 'remount,ro', disk])
  else chmodSync(folder, 0o500)
  const path = disk ?? folder
  const [unwritable] = await checkDisks([{ path, use, isDatabase: false }])
  assert.equal(unwritable?.status, 'problem')
  assert.match(unwritable?.message ?? '', /cannot be written by this user \((EROFS|EACCES)\)/)
})

test('files: a secret that others can read is a problem, with the command that fixes it', async (t) => {
  const path = join(createFolder(t), 'adit.db.secret')
  writeFileSync(path, 'x'.repeat(44), { mode: 0o600 })
  const check = () => checkFiles([{ paths: [path], use: 'session secret' }])
  assert.deepEqual(await check(), [ok('Files with secrets are private to their owner.')])
  chmodSync(path, 0o644)
  assert.deepEqual(await check(), [
    {
      status: 'problem',
      message: `Every user of this machine has access to the session secret: ${path} has mode 644.`,
      remedy: `Run: chmod go= ${path}`,
    },
  ])
  chmodSync(path, 0o640)
  assert.equal((await check())[0]?.status, 'warning')
  rmSync(path)
  assert.equal((await check())[0]?.status, 'skipped')
})

test('files: of a folder it matters who can write to it', async (t) => {
  const path = join(createFolder(t), 'data')
  mkdirSync(path)
  const statusAt = async (mode: number) => {
    chmodSync(path, mode)
    return (await checkFiles([{ paths: [path], use: 'folder' }])).map(({ status }) => status)
  }
  assert.deepEqual(await statusAt(0o755), ['ok'])
  assert.deepEqual(await statusAt(0o1777), ['ok'])
  assert.deepEqual(await statusAt(0o775), ['warning'])
  assert.deepEqual(await statusAt(0o777), ['problem'])
})

test('files: a file that another user owns than the database is a problem', async (t) => {
  if (process.getuid?.() !== 0) return t.skip('only root can change owners')
  const folder = createFolder(t)
  const [database, wal] = [join(folder, 'adit.db'), join(folder, 'adit.db-wal')]
  for (const path of [database, wal]) writeFileSync(path, '', { mode: 0o600 })
  chownSync(database, 1234, 1234)
  const [finding] = await checkFiles([{ paths: [wal], use: 'database', ownedLike: database }])
  assert.equal(finding?.status, 'problem')
  assert.match(finding?.remedy ?? '', /^Run: chown 1234:1234 .*adit\.db-wal\./)
})

test('files: a missing, short or unreadable session secret is found, and none is created', async (t) => {
  const database = join(createFolder(t), 'adit.db')
  assert.deepEqual(await checkSecretFile(database), [])
  writeFileSync(database, '')
  const status = async () => (await checkSecretFile(database)).map((finding) => finding.status)
  assert.deepEqual(await status(), ['warning'])
  assert.deepEqual(await status(), ['warning'])
  writeFileSync(`${database}.secret`, 'short')
  assert.deepEqual(await status(), ['problem'])
  writeFileSync(`${database}.secret`, 'x'.repeat(44))
  assert.deepEqual(await status(), [])
  rmSync(`${database}.secret`)
  mkdirSync(`${database}.secret`)
  assert.deepEqual(await status(), ['problem'])
})

test('configuration: a public address without https or a base URL is a warning', () => {
  const check = (config: object) =>
    checkConfiguration({ config, errors: [], unknown: [] }).map(({ status }) => status)
  assert.deepEqual(check({ host: '127.0.0.1' }), ['ok'])
  assert.deepEqual(check({ host: '0.0.0.0' }), ['warning'])
  assert.deepEqual(check({ host: '0.0.0.0', baseUrl: 'https://adit.example.com' }), ['ok'])
  assert.deepEqual(check({ host: '::1', baseUrl: 'http://adit.example.com' }), ['warning'])
  assert.deepEqual(check({ host: '::1', baseUrl: 'http://[::1]:8080' }), ['ok'])
})

test('a check that hangs or throws is a problem, and the others are reported', async () => {
  const results = await runChecks(
    [
      { name: 'hangs', run: () => new Promise(() => {}) },
      { name: 'throws', run: () => Promise.reject(new Error('broken')) },
      { name: 'fine', run: async () => ok('fine') },
    ],
    10,
  )
  assert.deepEqual(pluck(results, 'check', 'status', 'message'), [
    ['hangs', 'problem', 'The check did not end within 0.01 seconds.'],
    ['throws', 'problem', 'The check failed: broken.'],
    ['fine', 'ok', 'fine'],
  ])
})
