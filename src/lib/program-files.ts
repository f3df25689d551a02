// Files that are built with the program, such as those of the dashboard: beside it, or in the executable.
import { existsSync, readdirSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { findPackageJSON } from 'node:module'
import { dirname, join } from 'node:path'
import { getAssetKeys, getRawAsset, isSea } from 'node:sea'

export interface ProgramFiles {
  /** Paths relative to the folder. */
  readonly names: ReadonlySet<string>
  /** Cached: a copy for each response would let slow readers fill the memory. Do not change the buffer. */
  read(name: string): Promise<Buffer>
  /** Where the file is; undefined if it is in the executable. */
  path(name: string): string | undefined
}

/** Where the program is installed: the folder of its package, or of the executable. */
export const programFolder = (): string =>
  isSea() ? dirname(process.execPath) : dirname(findPackageJSON(import.meta.url) as string)

/** `folder` is relative to the package. */
export function openProgramFiles(folder: string): ProgramFiles {
  if (isSea()) {
    const keys = getAssetKeys().filter((key) => key.startsWith(`${folder}/`))
    return {
      names: new Set(keys.map((key) => key.slice(folder.length + 1))),
      read: async (name) => Buffer.from(getRawAsset(`${folder}/${name}`)),
      path: () => undefined,
    }
  }
  const path = join(programFolder(), folder)
  const entries = existsSync(path) ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : []
  const contents = new Map<string, Promise<Buffer>>()
  return {
    names: new Set(entries),
    read(name) {
      const cached = contents.get(name)
      if (cached) return cached
      const content = readFile(join(path, name))
      contents.set(name, content)
      content.catch(() => contents.delete(name))
      return content
    },
    path: (name) => join(path, name),
  }
}
