// Checks owner and mode of files with secrets, and the content of the session secret.
import type { Stats } from 'node:fs'
import { readFile, stat } from 'node:fs/promises'
import { SECRET_CHARS_MIN, secretPath } from '../session-secret.ts'
import { type Finding, ok, problem, skipped, warning } from './check.ts'

const GROUP = 0o070
const OTHERS = 0o007
/** The bits that matter for a folder: the files in it have modes of their own. */
const WRITE = 0o022
const STICKY = 0o1000

export interface PrivateFiles {
  /** Files and folders of the same use, which are reported together. */
  paths: readonly string[]
  use: string
  /** A file of the user that runs the server, who must own these files too. */
  ownedLike?: string
}

/** Skips files that do not exist or are in a folder without access. */
export async function checkFiles(groups: readonly PrivateFiles[]): Promise<Finding[]> {
  if (process.platform === 'win32') return [skipped('File modes are not checked on Windows.')]
  const checked = await Promise.all(groups.map(checkGroup))
  const found = checked.filter((findings) => findings !== undefined)
  if (found.length === 0) return [skipped('No files with secrets on this machine.')]
  const findings = found.flat()
  return findings.length > 0 ? findings : [ok('Files with secrets are private to their owner.')]
}

interface FoundFile {
  path: string
  stats: Stats
}

async function checkGroup({ paths, use, ownedLike }: PrivateFiles): Promise<Finding[] | undefined> {
  const files = (await Promise.all(paths.map(find))).filter((file) => file !== undefined)
  if (files.length === 0) return undefined
  const owner = ownedLike === undefined ? undefined : await find(ownedLike)
  const findings: Finding[] = []
  const open = files.filter((file) => harmfulAccess(file) & OTHERS)
  const forGroup = files.filter((file) => harmfulAccess(file) & GROUP)
  if (open.length > 0) findings.push(problem(...describe(open, use, 'Every user of this machine')))
  else if (forGroup.length > 0) findings.push(warning(...describe(forGroup, use, 'The group of the file')))
  for (const { path, stats } of files)
    if (owner && owner.stats.uid !== stats.uid)
      findings.push(
        problem(
          `${path} (${use}) belongs to user ${stats.uid}, but ${owner.path} to user ${owner.stats.uid}.`,
          `Run: chown ${owner.stats.uid}:${owner.stats.gid} ${path}. Run admin commands as the ` +
            'user that runs the server.',
        ),
      )
  return findings
}

const find = (path: string): Promise<FoundFile | undefined> =>
  stat(path).then(
    (stats) => ({ path, stats }),
    () => undefined,
  )

/** The mode bits by which the group or others can read secrets or replace files. */
function harmfulAccess({ stats }: FoundFile): number {
  if (!stats.isDirectory()) return stats.mode
  return stats.mode & STICKY ? 0 : stats.mode & WRITE
}

function describe(files: readonly FoundFile[], use: string, who: string): [message: string, remedy: string] {
  const modes = files.map(({ path, stats }) => `${path} has mode ${(stats.mode & 0o777).toString(8)}`)
  const isFolder = files[0]?.stats.isDirectory()
  return [
    `${who} ${isFolder ? 'can replace the files of' : 'has access to'} the ${use}: ${modes.join(', ')}.`,
    `Run: chmod go${isFolder ? '-w' : '='} ${files.map(({ path }) => path).join(' ')}`,
  ]
}

/** Checks the session secret next to an SQLite database, without creating it. */
export async function checkSecretFile(database: string): Promise<Finding[]> {
  if (!(await stat(database).catch(() => undefined))) return []
  const path = secretPath(database)
  const fix = 'Restore the file from where you keep a copy, or set ADIT_SECRET.'
  try {
    const text = await readFile(path, 'utf8')
    if (text.trim().length >= SECRET_CHARS_MIN) return []
    return [problem(`${path} has fewer than ${SECRET_CHARS_MIN} characters.`, fix)]
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException
    if (code !== 'ENOENT') return [problem(`The session secret in ${path} cannot be read (${code}).`, fix)]
    return [
      warning(
        `There is no session secret at ${path}. The server creates one when it starts; sessions and ` +
          'two-factor authentication of existing users need the old one.',
        fix,
      ),
    ]
  }
}
