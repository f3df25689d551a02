// A file with the cursor of the last exported entry.
import { readFileSync } from 'node:fs'
import { CommandError } from '../errors.ts'
import { replaceFile } from '../tunnels/edit-file.ts'

interface CursorFile {
  /** Undefined if there is no file yet. */
  cursor: string | undefined
  store(cursor: string): void
}

export const openCursorFile = (path: string): CursorFile => ({
  cursor: read(path),
  store: (cursor) => replaceFile(path, `${cursor}\n`),
})

function read(path: string): string | undefined {
  try {
    return readFileSync(path, 'utf8').trim()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    if (code === 'ENOENT') return undefined
    throw new CommandError('cursor_file', `Cannot read the cursor from ${path}: ${message}.`)
  }
}
