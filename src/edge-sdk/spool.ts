// What is still to be sent, on disk: a file for each run of the edge, replaced as a whole. What a run left behind is there
// for the next one to send.
import { open, readdir, readFile, rename, rm, stat } from 'node:fs/promises'
import { join } from 'node:path'
import type { Report } from './control-plane.ts'
import { createFolder } from './folder.ts'

/** What earlier runs left behind, all together; beyond it the oldest is given up. */
const LEFT_BEHIND_BYTES_MAX = 64 * 1024 * 1024
const DRAFT = /^usage-.*\.json\.new$/
const NAME = /^usage-([\x21-\x2e\x30-\x7e]{1,64})\.json$/

export interface Leftover {
  reports: Report[]
  /** It is with the control plane: gone from disk. */
  discard(): Promise<void>
  /** The rest is with the control plane: only this is left to send. */
  keepOnly(reports: Report[]): Promise<void>
  /** It will never be taken: kept for whoever wants to look, and not tried again. */
  setAside(reason: string): Promise<void>
}

export interface Spool {
  /** Comes back when it is on disk for good; nothing to send leaves no file. */
  write(reports: Report[]): Promise<void>
  /** What earlier runs left, oldest first. */
  leftovers(): AsyncGenerator<Leftover>
}

export async function openSpool(
  folder: string,
  epoch: string,
  onNotice: (line: string) => void,
): Promise<Spool> {
  const own = join(folder, `usage-${epoch}.json`)
  let onDisk = '[]'
  // Tried at once: an edge that could not keep its counts should not begin to count.
  await createFolder(folder)
  for (const name of await readdir(folder))
    if (DRAFT.test(name)) await rm(join(folder, name), { force: true })
  await write([{ epoch }])
  await write([])
  await giveUpBeyondBound()

  async function write(reports: Report[]): Promise<void> {
    const text = JSON.stringify(reports)
    if (text === onDisk) return
    if (reports.length === 0) await rm(own, { force: true })
    else await replace(own, text)
    onDisk = text
  }

  async function replace(path: string, text: string): Promise<void> {
    const draft = `${path}.new`
    const file = await open(draft, 'w', 0o600)
    try {
      await file.writeFile(text)
      await file.sync()
    } catch (error) {
      // On a full disk half a draft would only take more of it.
      await rm(draft, { force: true })
      throw error
    } finally {
      await file.close()
    }
    await rename(draft, path)
  }

  /** Files of earlier runs, newest first. */
  async function leftFiles() {
    const files = []
    for (const name of await readdir(folder)) {
      const path = join(folder, name)
      if (path === own || !NAME.test(name)) continue
      const { mtimeMs, size } = await stat(path)
      files.push({ path, mtimeMs, size })
    }
    return files.sort((a, b) => b.mtimeMs - a.mtimeMs)
  }

  async function giveUpBeyondBound(): Promise<void> {
    let bytes = 0
    for (const { path, size } of await leftFiles()) {
      bytes += size
      if (bytes <= LEFT_BEHIND_BYTES_MAX) continue
      await rm(path, { force: true })
      onNotice(`Too much usage waits to be reported: ${path} was given up.`)
    }
  }

  return {
    write,
    async *leftovers() {
      for (const { path } of (await leftFiles()).reverse()) {
        const setAside = async (reason: string) => {
          await rename(path, `${path}.bad`)
          onNotice(`${path} was set aside as .bad: ${reason}`)
        }
        const text = await readFile(path, 'utf8')
        const discard = () => rm(path, { force: true })
        const keepOnly = async (remaining: Report[]) => {
          const rest = JSON.stringify(remaining)
          if (rest.length < text.length) await replace(path, rest)
        }
        const reports = readReports(text)
        if (reports) yield { reports, discard, keepOnly, setAside }
        else await setAside('it holds no reports.')
      }
    },
  }
}

function readReports(text: string): Report[] | undefined {
  try {
    const given: unknown = JSON.parse(text)
    return Array.isArray(given) ? given : undefined
  } catch {
    return undefined
  }
}
