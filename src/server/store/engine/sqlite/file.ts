// Checks the file of an SQLite database before SQLite opens it: SQLite would block on a pipe, use a device,
// or fail with an unhelpful error.
import { closeSync, mkdirSync, openSync, readSync, statSync } from 'node:fs'
import { dirname } from 'node:path'

/** Creates the file readable by its owner only; SQLite gives the files next to it the same mode. */
export function prepareFile(path: string): void {
  createDirectory(dirname(path))
  requireRegularFile(path)
  attempt('the file cannot be created or written', () => closeSync(openSync(path, 'a', 0o600)))
}

/** Throws if there is something else at the path. */
export function requireRegularFile(path: string): void {
  const found = statSync(path, { throwIfNoEntry: false })
  if (found?.isDirectory()) throw new Error('it is a directory; specify a file')
  if (found && !found.isFile()) throw new Error('it is not a regular file')
}

const HEADER_BYTES = 100

/**
 * Reads the header of a regular file: https://www.sqlite.org/fileformat.html#the_database_header. Returns
 * undefined if it has none.
 */
export function readHeader(path: string) {
  const header = Buffer.alloc(HEADER_BYTES)
  const descriptor = openSync(path, 'r')
  try {
    readSync(descriptor, header)
  } finally {
    closeSync(descriptor)
  }
  if (header.toString('latin1', 0, 16) !== 'SQLite format 3\0') return undefined
  // 1 stands for 65,536, which a 16-bit number cannot be.
  const pageSize = header.readUInt16BE(16) === 1 ? 65_536 : header.readUInt16BE(16)
  return {
    bytes: pageSize * header.readUInt32BE(28),
    hasWal: header[18] === 2,
    userVersion: header.readUInt32BE(60),
  }
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
