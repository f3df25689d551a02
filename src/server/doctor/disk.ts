// Checks the file systems that the server and an edge write to.
import { constants } from 'node:fs'
import { access, stat, statfs } from 'node:fs/promises'
import { type Finding, ok, problem, skipped, warning } from './check.ts'

const MIB = 1024 * 1024
const GIB = 1024 * MIB
const FREE_PROBLEM_BYTES = 100 * MIB
const FREE_WARNING_BYTES = GIB
const INODES_MIN = 1_000
/** NFS, CIFS, SMB2 and 9P: magic numbers of statfs on Linux. */
const NETWORK_TYPES = new Set([0x6969, 0xff534d42, 0xfe534d42, 0x01021997])

export interface Folder {
  path: string
  /** The content, for messages. */
  use: string
  isDatabase: boolean
}

/** Folders that do not exist are left out: a machine need not run both a server and an edge. */
export async function checkDisks(folders: readonly Folder[]): Promise<Finding[]> {
  const findings: Finding[] = []
  for (const folder of folders) {
    const found = await stat(folder.path).catch(() => undefined)
    if (found) findings.push(...(await checkDisk(folder)))
  }
  return findings.length > 0
    ? findings
    : [
        skipped(
          'No database or edge has a folder on this machine. Monitor the disk of PostgreSQL on its own.',
        ),
      ]
}

async function checkDisk({ path, use, isDatabase }: Folder): Promise<Finding[]> {
  const findings: Finding[] = []
  const { bavail, bsize, files, ffree, type } = await statfs(path)
  const free = bavail * bsize
  const size = free < GIB ? `${Math.floor(free / MIB)} MiB` : `${(free / GIB).toFixed(1)} GiB`
  const message = `${path} (${use}) has ${size} of free disk space.`
  const remedy = 'Free up or add disk space. What grows: docs/operations/retention.md.'
  if (free < FREE_PROBLEM_BYTES) findings.push(problem(message, remedy))
  else if (free < FREE_WARNING_BYTES) findings.push(warning(message, remedy))
  if (files > 0 && ffree < INODES_MIN)
    findings.push(
      problem(
        `${path} (${use}) has ${ffree} free inodes, and each file needs one.`,
        'Delete files on that disk, or create the file system with more inodes.',
      ),
    )
  if (isDatabase && NETWORK_TYPES.has(type))
    findings.push(
      problem(
        `${path} (${use}) is on a network file system, where SQLite can damage the database.`,
        'Move it to a local disk, or use PostgreSQL.',
      ),
    )
  await access(path, constants.W_OK).catch(({ code }) =>
    findings.push(
      problem(
        `${path} (${use}) cannot be written by this user (${code}).`,
        'Run the command as the user of the server; then check the owner of the folder and the mount options.',
      ),
    ),
  )
  return findings.length > 0 ? findings : [ok(message)]
}
