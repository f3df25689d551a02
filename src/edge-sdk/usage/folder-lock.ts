// Exclusive use of a folder by one running process. The name of an empty lock file identifies the process: by
// its id and, on Linux, by the time of its start and the boot, because ids are reused (in a container the
// process is always 1). So the lock of a process that was killed is recognized as stale.
import { readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { join } from 'node:path'

const NAME = /^process-(\d{1,10})-(.{1,100})\.lock$/
const UNKNOWN_START = 'unknown'

/** Returns the function that releases the lock. Rejects if another running process has locked the folder. */
export async function lockFolder(folder: string): Promise<() => Promise<void>> {
  const ownStart = await findStart(process.pid)
  const ownName = `process-${process.pid}-${ownStart ?? UNKNOWN_START}.lock`
  const path = join(folder, ownName)
  const inUse = (pid: number, name: string) =>
    new Error(
      `The folder ${folder} is in use by process ${pid}, another edge. Stop that process, or give each edge a ` +
        `folder of its own. If process ${pid} is not an edge, delete ${join(folder, name)}.`,
    )
  try {
    await writeFile(path, '', { flag: 'wx', mode: 0o600 })
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error
    // If the start is not known, the lock may be from an earlier process with the same id.
    if (ownStart !== undefined) throw inUse(process.pid, ownName)
  }
  let isHeld = true
  const release = async () => {
    if (isHeld) await rm(path, { force: true })
    isHeld = false
  }
  // This check follows the creation of our lock, so at least one of two processes that start together fails.
  for (const name of await readdir(folder)) {
    const [, pid, start] = NAME.exec(name) ?? []
    if (pid === undefined || name === ownName) continue
    if (await isRunning(Number(pid), start, ownStart)) {
      await release()
      throw inUse(Number(pid), name)
    }
    await rm(join(folder, name), { force: true })
  }
  return release
}

async function isRunning(pid: number, start: string | undefined, ownStart: string | undefined) {
  if (ownStart !== undefined) return start === (await findStart(pid))
  if (pid === process.pid) return false
  try {
    process.kill(pid, 0)
    return true
  } catch (error) {
    return (error as NodeJS.ErrnoException).code === 'EPERM'
  }
}

/** Start of a process in clock ticks, with the boot id. Undefined if it has ended, and on other systems. */
async function findStart(pid: number): Promise<string | undefined> {
  try {
    const boot = await readFile('/proc/sys/kernel/random/boot_id', 'utf8')
    const stat = await readFile(`/proc/${pid}/stat`, 'utf8')
    // The program name in parentheses may contain spaces. Fields 3 and 22 are the state and the start.
    const fields = stat.slice(stat.lastIndexOf(')') + 2).split(' ')
    const [state = ''] = fields
    return 'ZX'.includes(state) ? undefined : `${fields[19]}-${boot.trim()}`
  } catch {
    return undefined
  }
}
