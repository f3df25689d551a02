// Paths that cannot be used: the start must not wait as for a database that is still starting.
import assert from 'node:assert/strict'
import { execFileSync } from 'node:child_process'
import { chmodSync, chownSync, mkdirSync, symlinkSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { atEnd } from '../support/cleanup.ts'
import { createFolder } from '../support/databases/create.ts'
import { failStart } from './failed-start.ts'

const isRoot = process.getuid?.() === 0
const NOBODY_UID = 65_534

/** The message of the failed start. */
async function failQuickly(path: string): Promise<string> {
  const began = performance.now()
  const message = await failStart(path)
  const took = performance.now() - began
  assert.ok(took < 1_000, `${path} took ${took} ms`)
  return message
}

test('an unusable path fails the start within a second, with the reason', async (t) => {
  const folder = createFolder(t)
  const place = (name: string) => join(folder, name)
  writeFileSync(place('text'), 'This is not a database, and longer than the header of one. '.repeat(50))
  execFileSync('mkfifo', [place('fifo')])
  symlinkSync(place('nowhere'), place('dangling'))
  assert.match(await failQuickly(folder), /is a directory/)
  assert.match(await failQuickly('/dev/full'), /not a regular file/)
  assert.match(await failQuickly('/dev/null'), /not a regular file/)
  assert.match(await failQuickly(place('fifo')), /not a regular file/)
  assert.match(await failQuickly(join(place('text'), 'adit.db')), /cannot be created/)
  assert.match(await failQuickly(join(place('dangling'), 'adit.db')), /cannot be created/)
  assert.match(await failQuickly(place('text')), /is not a SQLite database.+ADIT_DATABASE_URL/)
  if (process.platform !== 'linux') return
  assert.match(await failQuickly('/proc/nobody/adit.db'), /cannot be created/)
  assert.match(await failQuickly('/proc/nobody/deep/er/adit.db'), /cannot be created/)
  assert.match(await failQuickly('/proc/self/x'), /cannot be created/)
})

test('a file or folder without write permission fails the start within a second', async (t) => {
  const folder = createFolder(t)
  const closed = join(folder, 'closed')
  mkdirSync(closed)
  for (const name of ['unwritable.db', 'writable.db']) writeFileSync(join(closed, name), '')
  chmodSync(join(closed, 'unwritable.db'), 0o444)
  if (isRoot) {
    chmodSync(folder, 0o755)
    chownSync(join(closed, 'writable.db'), NOBODY_UID, NOBODY_UID)
    process.seteuid?.(NOBODY_UID)
    atEnd(t, () => process.seteuid?.(0))
  } else chmodSync(closed, 0o555)
  assert.match(await failQuickly(join(closed, 'unwritable.db')), /cannot be created or written/)
  assert.match(await failQuickly(join(closed, 'new.db')), /cannot be created or written/)
  // SQLite writes its WAL beside the file.
  assert.match(await failQuickly(join(closed, 'writable.db')), /Cannot use the SQLite database/)
  if (isRoot) process.seteuid?.(0)
  else chmodSync(closed, 0o755)
})
