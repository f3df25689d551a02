// Checks the file of an SQLite database before SQLite opens it: SQLite would block on a pipe, use a device,
// or fail with an unhelpful error.
import { closeSync, mkdirSync, openSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Creates the file readable by its owner only; SQLite gives the files next to it the same mode. */
export function prepareFile(path: string): void {
  createDirectory(dirname(path))
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new Error('it is a directory; specify a file')
  if (found && !found.isFile()) throw new Error('it is not a regular file')
  attempt('the file cannot be created or written', () => closeSync(openSync(path, 'a', 0o600)))
}

/** Not with `recursive`: where directories cannot be created, as in /proc, `mkdirSync` would loop forever. */
function createDirectory(path: string): void {
  if (statSync(path, { throwIfNoEntry: false })?.isDirectory()) return
  const parent = dirname(path)
  if (parent !== path) createDirectory(parent)
  attempt(`the directory ${path} cannot be created`, () => {
    try {
      mkdirSync(path, { mode: 0o700 })
    } catch (error) {
      // Another process may have created it.
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
