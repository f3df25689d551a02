// Edits a file under a lock and replaces it by rename, so that readers never see a partial write.
import {
  closeSync,
  fchmodSync,
  fchownSync,
  fstatSync,
  fsyncSync,
  openSync,
  renameSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs'
import { setTimeout as sleep } from 'node:timers/promises'
import { CommandError } from '../errors.ts'

const LOCK_TIMEOUT_MS = 3_000
const LOCK_RETRY_MS = 50

/** `edit` reads the current file and returns its new content. It runs under the lock. */
export async function editFile(path: string, edit: () => string): Promise<void> {
  const lock = `${path}.lock`
  await acquire(lock)
  try {
    replaceFile(path, edit())
  } finally {
    rmSync(lock, { force: true })
  }
}

async function acquire(lock: string): Promise<void> {
  const start = performance.now()
  while (true) {
    try {
      writeFileSync(lock, '', { flag: 'wx', mode: 0o600 })
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (performance.now() - start > LOCK_TIMEOUT_MS)
        throw new CommandError(
          'locked',
          `${lock} exists: another command is editing the file. If none is running, remove it and try again.`,
        )
      await sleep(LOCK_RETRY_MS)
    }
  }
}

/** Keeps owner and mode of the old file; a new file is private to its owner. */
export function replaceFile(path: string, text: string): void {
  const before = statSync(path, { throwIfNoEntry: false })
  const draft = `${path}.new`
  rmSync(draft, { force: true })
  const file = openSync(draft, 'wx', 0o600)
  try {
    const { uid, gid } = fstatSync(file)
    if (before && (before.uid !== uid || before.gid !== gid)) fchownSync(file, before.uid, before.gid)
    if (before) fchmodSync(file, before.mode & 0o777)
    writeFileSync(file, text)
    fsyncSync(file)
  } finally {
    closeSync(file)
  }
  renameSync(draft, path)
}
