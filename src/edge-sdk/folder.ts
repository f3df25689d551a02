import { mkdir, stat } from 'node:fs/promises'
import { dirname } from 'node:path'

/** Creates parents one by one: `mkdir` with `recursive` never returns on file systems such as /proc. */
export async function createFolder(path: string): Promise<void> {
  try {
    await mkdir(path, { mode: 0o700 })
  } catch (error) {
    if (await isFolder(path)) return
    const parent = dirname(path)
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || (await isFolder(parent))) throw error
    await createFolder(parent)
    await mkdir(path, { mode: 0o700 })
  }
}

const isFolder = (path: string): Promise<boolean> =>
  stat(path).then(
    (found) => found.isDirectory(),
    () => false,
  )
