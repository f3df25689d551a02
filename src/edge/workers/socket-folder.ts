// The folder of the sockets at which workers serve each other. Only this user may open it.
import { randomBytes } from 'node:crypto'
import { mkdtempSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'

interface SocketFolder {
  path(worker: string): string
  /** The worker has exited. */
  remove(worker: string): void
  close(): void
}

/** Windows has named pipes, which no other user can find by chance. */
export function createSocketFolder(): SocketFolder {
  if (process.platform === 'win32') {
    const prefix = `\\\\.\\pipe\\adit-${randomBytes(16).toString('hex')}`
    return { path: (worker) => `${prefix}-${worker}`, remove() {}, close() {} }
  }
  // The path of a socket has a limit of about 100 bytes.
  const folder = mkdtempSync(join(tmpdir(), 'adit-workers-'))
  const path = (worker: string) => join(folder, worker)
  return {
    path,
    remove: (worker) => rmSync(path(worker), { force: true }),
    close: () => rmSync(folder, { recursive: true, force: true }),
  }
}
