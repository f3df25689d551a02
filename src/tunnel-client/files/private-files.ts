// Files that must not be published: those whose names begin with a dot, and those of Adit itself.
import { readdir, readFile, realpath, stat } from 'node:fs/promises'
import { basename, isAbsolute, join, relative, sep } from 'node:path'

/** Databases, their session secrets, and what an edge has not reported yet. */
const ADIT_DATA = /^adit\.db|\.secret$|^usage-[0-9a-f]{16}-.*\.json/i
const TOKENS_FILE = 'tokens.json'
const TOKENS_FILE_BYTES_MAX = 16 * 1024 * 1024
/** A larger folder is not searched to its end; its private files are not served either way. */
const SEARCHED_ENTRIES_MAX = 100_000

export const isPrivateName = (name: string): boolean => name.startsWith('.') || ADIT_DATA.test(name)

/** A path with Adit's data that is in the folder or contains it; undefined if there is none. */
export async function findAditData(
  folder: string,
  dataPaths: readonly string[],
): Promise<string | undefined> {
  for (const path of dataPaths) {
    const real = await realpath(path).catch(() => undefined)
    if (real === undefined) continue
    const containsFolder = isInside(folder, real) && (await stat(real)).isDirectory()
    if (isInside(real, folder) || containsFolder) return path
  }
  return search(folder)
}

/** A folder is inside itself. A path on another Windows drive stays absolute. */
export function isInside(path: string, folder: string): boolean {
  const relativePath = relative(folder, path)
  return relativePath !== '..' && !relativePath.startsWith(`..${sep}`) && !isAbsolute(relativePath)
}

/** Breadth first, so that what is near the top is found in any case. Links are not followed. */
async function search(folder: string): Promise<string | undefined> {
  const folders = [folder]
  let entries = 0
  for (let path = folders.shift(); path !== undefined; path = folders.shift()) {
    for (const entry of await readdir(path, { withFileTypes: true }).catch(() => [])) {
      if (++entries > SEARCHED_ENTRIES_MAX) return undefined
      const entryPath = join(path, entry.name)
      if (entry.isDirectory()) folders.push(entryPath)
      else if (ADIT_DATA.test(entry.name) || (await isTokensFile(entryPath))) return entryPath
    }
  }
  return undefined
}

/** The name alone says nothing: design tokens are in files of the same name. */
async function isTokensFile(path: string): Promise<boolean> {
  if (basename(path) !== TOKENS_FILE) return false
  try {
    if ((await stat(path)).size > TOKENS_FILE_BYTES_MAX) return true
    const { tokens } = JSON.parse(await readFile(path, 'utf8'))
    return tokens.some(({ hash, workspace }: Record<string, unknown>) => Boolean(hash && workspace))
  } catch {
    return false
  }
}
