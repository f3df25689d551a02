// Finds adit.json in the working directory, or above it up to the root of the repository. A file planted by
// another user, for example in /tmp, must not publish anything, so the file, each folder on the way and .git
// have to belong to the user.
import { constants } from 'node:fs'
import { lstat, open } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { PROJECT_FILE, PROJECT_FILE_BYTES_MAX } from '../../../contract/project-file.ts'
import { UsageError } from '../../errors.ts'

interface FoundFile {
  readonly path: string
  readonly text: string
}

/** Returns undefined if there is no file. Throws if the file cannot be used. */
export async function findProjectFile(start: string): Promise<FoundFile | undefined> {
  let found: string | undefined
  for (let folder = start; ; folder = dirname(folder)) {
    if (!(await isOwn(folder))) break
    const file = join(folder, PROJECT_FILE)
    found ??= (await exists(file)) ? file : undefined
    // Without a repository, the working directory is the project.
    if (await isOwn(join(folder, '.git'))) return found === undefined ? undefined : readOwn(found)
    if (folder === dirname(folder)) break
  }
  const inStart = join(start, PROJECT_FILE)
  return (await exists(inStart)) ? readOwn(inStart) : undefined
}

const exists = (path: string) =>
  lstat(path).then(
    () => true,
    () => false,
  )

/** Windows has no user IDs, so everything counts as the user's own. */
const isOwnUid = (uid: number) => process.getuid === undefined || uid === process.getuid()

const isOwn = (path: string) =>
  lstat(path).then(
    ({ uid }) => isOwnUid(uid),
    () => false,
  )

async function readOwn(path: string): Promise<FoundFile> {
  if (!(await isOwn(dirname(path)))) throw notUsed(path, 'its folder belongs to another user')
  const file = await open(path, constants.O_RDONLY | constants.O_NOFOLLOW | constants.O_NONBLOCK).catch(
    (error: NodeJS.ErrnoException) => {
      throw notUsed(
        path,
        error.code === 'ELOOP' ? 'it is a symbolic link' : `it cannot be read (${error.code})`,
      )
    },
  )
  try {
    const { uid, size, isFile } = await file.stat().then((stat) => ({ ...stat, isFile: stat.isFile() }))
    if (!isOwnUid(uid)) throw notUsed(path, 'it belongs to another user')
    if (!isFile) throw notUsed(path, 'it is not a file')
    if (size > PROJECT_FILE_BYTES_MAX)
      throw notUsed(path, `it is larger than ${PROJECT_FILE_BYTES_MAX} bytes`)
    const buffer = Buffer.alloc(PROJECT_FILE_BYTES_MAX)
    const { bytesRead } = await file.read(buffer, 0, buffer.length, 0)
    return { path, text: buffer.toString('utf8', 0, bytesRead) }
  } finally {
    await file.close()
  }
}

const notUsed = (path: string, reason: string) => new UsageError(`${path} is not used: ${reason}.`)
