// A folder on disk that is shared: maps the path of a URL to a file in it, and to nothing else.
import { type BigIntStats, constants } from 'node:fs'
import { type FileHandle, open, opendir, readlink, realpath, stat } from 'node:fs/promises'
import { join, relative, sep } from 'node:path'
import { isInside, isPrivateName } from './private-files.ts'

const LISTED_ENTRIES_MAX = 2_000
/** NONBLOCK: opening a FIFO would wait for its writer. */
const READ = constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK
/** A file that is not there, or that this user may not read. */
const ABSENT = new Set(['ENOENT', 'ENOTDIR', 'EISDIR', 'ELOOP', 'EACCES', 'EPERM', 'ENAMETOOLONG', 'ENXIO'])

export interface OpenFile {
  readonly path: string
  readonly handle: FileHandle
  readonly stats: BigIntStats
}

export interface Entry {
  readonly name: string
  readonly isFolder: boolean
  readonly bytes: bigint
  readonly modifiedAt: Date
}

export interface Listing {
  readonly entries: readonly Entry[]
  /** There are more than can be listed. */
  readonly isTruncated: boolean
}

/** The decoded segments of a path; undefined if no file may be served there. */
export function parsePath(path: string): string[] | undefined {
  let names: string[]
  try {
    names = path.split('/').filter(Boolean).map(decodeURIComponent)
  } catch {
    return undefined
  }
  return names.every(isServedName) ? names : undefined
}

/** On Windows, a colon marks a drive or an alternate data stream. */
const isServedName = (name: string) =>
  !isPrivateName(name) && !/[/\\\0]/.test(name) && !(process.platform === 'win32' && name.includes(':'))

export class SharedFolder {
  readonly #root: string

  /** @param root Its real path. */
  constructor(root: string) {
    this.#root = root
  }

  /** Opens a file or a folder; undefined if there is none that may be served. */
  async open(names: readonly string[]): Promise<OpenFile | undefined> {
    let handle: FileHandle | undefined
    try {
      const path = await this.#realPath(names)
      if (path === undefined) return undefined
      handle = await open(path, READ)
      const stats = await handle.stat({ bigint: true })
      if (isServed(stats) && (await isAt(path, handle, stats))) return { path, handle, stats }
      await handle.close()
    } catch (error) {
      await handle?.close()
      if (!ABSENT.has((error as NodeJS.ErrnoException).code ?? '')) throw error
    }
    return undefined
  }

  /** Symbolic links may lead to other files that are served, not out of the folder. */
  async #realPath(names: readonly string[]): Promise<string | undefined> {
    const path = await realpath(join(this.#root, ...names))
    if (!isInside(path, this.#root)) return undefined
    return relative(this.#root, path).split(sep).every(isServedName) ? path : undefined
  }

  /** Folders first, by name. Leaves out private names, devices, and links that lead out of the folder. */
  async list(names: readonly string[], { path }: OpenFile): Promise<Listing> {
    const entries: Entry[] = []
    let isTruncated = false
    for await (const { name } of await opendir(path)) {
      if (!isServedName(name)) continue
      const stats = await this.#describe([...names, name])
      if (!stats) continue
      isTruncated = entries.length === LISTED_ENTRIES_MAX
      if (isTruncated) break
      const { size: bytes, mtime: modifiedAt } = stats
      entries.push({ name, isFolder: stats.isDirectory(), bytes, modifiedAt })
    }
    const order = (a: Entry, b: Entry) =>
      Number(b.isFolder) - Number(a.isFolder) || (a.name < b.name ? -1 : 1)
    return { entries: entries.sort(order), isTruncated }
  }

  async #describe(names: readonly string[]): Promise<BigIntStats | undefined> {
    const path = await this.#realPath(names).catch(() => undefined)
    const stats = path && (await stat(path, { bigint: true }).catch(() => undefined))
    return stats && isServed(stats) ? stats : undefined
  }
}

/** Rejects devices, FIFOs and sockets. */
const isServed = (stats: BigIntStats) => stats.isFile() || stats.isDirectory()

/**
 * A folder in the path may have been replaced by a symbolic link between check and opening. Only Linux tells
 * the path of an open file; elsewhere someone who can write to the folder could still win a race.
 */
async function isAt(path: string, { fd }: FileHandle, { dev, ino }: BigIntStats): Promise<boolean> {
  const opened = await readlink(`/proc/self/fd/${fd}`).catch(() => undefined)
  if (opened !== undefined) return opened === path
  const now = await stat(path, { bigint: true })
  return now.dev === dev && now.ino === ino && (await realpath(path)) === path
}
