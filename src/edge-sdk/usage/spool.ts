// Unreported usage on disk: one file per run of the edge, replaced atomically. The next run sends the files
// of earlier runs with the same credential; with another credential, the control plane would count the same
// usage for two edges.
import { readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Report } from '../api.ts'
import { createFolder, replaceFile } from './folder.ts'
import { lockFolder } from './folder-lock.ts'

/** Limit of the total size of earlier runs' files; beyond it the oldest are deleted. */
const EARLIER_BYTES_MAX = 64 * 1024 * 1024
const DRAFT = /^usage-.*\.json\.new$/
/** The name contains the fingerprint of the credential. */
const NAME = /^usage-([0-9a-f]{16})-[\x21-\x2e\x30-\x7e]{1,64}\.json$/

export interface SpoolFile {
  reports: Report[]
  /** Deletes the file after the control plane has accepted all of it. */
  discard(): Promise<void>
  /** Replaces the content with the reports that are still to be sent. */
  keepOnly(reports: Report[]): Promise<void>
  /** Renames the file, so that it can be inspected and is not sent again. */
  quarantine(reason: string): Promise<void>
}

interface Spool {
  /** Resolves when the reports are synced to disk. Without reports there is no file. */
  write(reports: Report[]): Promise<void>
  /** Files of earlier runs with this credential, oldest first. */
  earlierFiles(): AsyncGenerator<SpoolFile>
  /** Total size of the files. That of earlier runs is from the time when they were last listed. */
  bytes(): number
  /** Releases the folder for other processes. */
  close(): Promise<void>
}

interface SpoolOptions {
  epoch: string
  /** Fingerprint of the credential. */
  owner: string
  onNotice: (line: string) => void
}

export async function openSpool(folder: string, { epoch, owner, onNotice }: SpoolOptions): Promise<Spool> {
  const ownPath = join(folder, `usage-${owner}-${epoch}.json`)
  let onDisk = '[]'
  let earlierBytes = 0
  await createFolder(folder)
  const close = await lockFolder(folder)
  try {
    for (const name of await readdir(folder))
      if (DRAFT.test(name)) await rm(join(folder, name), { force: true })
    // If the folder is not writable, the edge must not start.
    await write([{ epoch }])
    await write([])
    await logOtherOwners()
    await deleteBeyondLimit()
  } catch (error) {
    await close()
    throw error
  }

  /** Logs which files belong to other credentials. */
  async function logOtherOwners(): Promise<void> {
    const others = new Set<string>()
    for (const name of await readdir(folder)) {
      const fileOwner = NAME.exec(name)?.[1] ?? owner
      if (fileOwner !== owner) others.add(join(folder, `usage-${fileOwner}-*.json`))
    }
    if (others.size > 0)
      onNotice(
        `Usage that was counted with another edge credential is not reported: ${[...others].join(', ')}. ` +
          'Start the edge once with that credential, or delete the files if it was revoked.',
      )
  }

  async function write(reports: Report[]): Promise<void> {
    const text = JSON.stringify(reports)
    if (text === onDisk) return
    if (reports.length === 0) await rm(ownPath, { force: true })
    else await replaceFile(ownPath, text)
    onDisk = text
  }

  /** Files of earlier runs with this credential, newest first. */
  async function listEarlier() {
    const files = []
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (path === ownPath || NAME.exec(name)?.[1] !== owner) continue
      const { mtimeMs, size } = await stat(path)
      files.push({ path, mtimeMs, size })
    }
    earlierBytes = files.reduce((sum, { size }) => sum + size, 0)
    return files.sort((a, b) => b.mtimeMs - a.mtimeMs)
  }

  async function deleteBeyondLimit(): Promise<void> {
    let bytes = 0
    for (const { path, size } of await listEarlier()) {
      bytes += size
      if (bytes <= EARLIER_BYTES_MAX) continue
      await rm(path, { force: true })
      onNotice(`Too much unreported usage: deleted ${path}.`)
    }
  }

  return {
    write,
    close,
    bytes: () => (onDisk === '[]' ? 0 : Buffer.byteLength(onDisk)) + earlierBytes,
    async *earlierFiles() {
      for (const { path } of (await listEarlier()).reverse()) {
        const quarantine = async (reason: string) => {
          await rename(path, `${path}.bad`)
          onNotice(`Renamed ${path} to .bad: ${reason}`)
        }
        const text = await readFile(path, 'utf8')
        const discard = () => rm(path, { force: true })
        const keepOnly = async (remaining: Report[]) => {
          const rest = JSON.stringify(remaining)
          if (rest.length < text.length) await replaceFile(path, rest)
        }
        const reports = parseReports(text)
        if (reports) yield { reports, discard, keepOnly, quarantine }
        else await quarantine('it contains no reports.')
      }
    },
  }
}

function parseReports(text: string): Report[] | undefined {
  try {
    const value: unknown = JSON.parse(text)
    return Array.isArray(value) ? value : undefined
  } catch {
    return undefined
  }
}
