// The file of an SQLite database, checked before SQLite opens it: SQLite itself would wait for a pipe, use a device, or
// fail in words that do not say what to do.
import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Made for its owner alone, and so will be the files that SQLite puts beside it. */
export function prepareFile(path: string): void {
  createFolder(dirname(path))
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new Error('it is a folder; name a file in it')
  if (found && !found.isFile()) throw new Error('it is not a regular file')
  attempt('the file cannot be created or written', () => closeSync(openSync(path, 'a', 0o600)))
}

/** One by one: where a folder cannot have others, as in /proc, `mkdirSync` with `recursive` tries for ever. */
function createFolder(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  const parent = dirname(path)
  if (parent !== path) createFolder(parent)
  attempt(`the folder ${path} cannot be created`, () => {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      // Another process may have been quicker.
      if (!statSync(path, { throwIfNoEntry: false })?.isDirectory()) throw error
    }
  })
}

function attempt(failure: string, act: () => void): void {
  try {
    act()
  } catch (error) {
    const { code, message } = error as NodeJS.ErrnoException
    throw new Error(`${failure} (${code ?? message})`, { cause: error })
  }
}
