// Files that commands edit: one editor at a time, and replaced as a whole, so that whoever reads sees the old one or the new.
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
import { CommandError } from './errors.ts'

const LOCK_PATIENCE_MS = 3_000
const LOCK_RETRY_MS = 50

/** `edit` reads the file as it is and answers with its new text. */
export async function editFile(path: string, edit: () => string): Promise<void> {
  const lock = `${path}.lock`
  await take(lock)
  try {
    replace(path, edit())
  } finally {
    rmSync(lock, { force: true })
  }
}

async function take(lock: string): Promise<void> {
  const began = performance.now()
  while (true) {
    try {
      writeFileSync(lock, '', { flag: 'wx', mode: 0o600 })
      return
    } catch (error) {
      if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
      if (performance.now() - began > LOCK_PATIENCE_MS)
        throw new CommandError(
          'locked',
          `Somebody else is editing the file. If nobody is, remove ${lock} and try again.`,
        )
      await sleep(LOCK_RETRY_MS)
    }
  }
}

/** Whoever could read the file before can read the new one, and nobody else; a new one is for its owner alone. */
function replace(path: string, text: string): void {
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
