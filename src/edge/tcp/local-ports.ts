// Ports of TCP tunnels of an edge without a control plane. They are stored in a file before a tunnel is
// opened, so that no restart gives the port of a name to another one.
import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder, replaceFile } from '../../edge-sdk/usage/folder.ts'
import { lockFolder } from '../../edge-sdk/usage/folder-lock.ts'
import { PORT_RENEWAL_MS, type PortRange, type PortRules, portRetentionMs } from '../../lib/net/tcp-ports.ts'
import { noFreePort, type Rejection, STOPPING, tooManyPorts, unsavedPort } from '../admission/rejections.ts'

const FILE = 'tcp-ports.json'

export interface LocalPortOptions extends PortRules {
  readonly folder: string
  readonly range: PortRange
  readonly clock?: () => number
}

interface Assignment {
  readonly port: number
  readonly workspace: string
  readonly name: string
  /** May lag behind the last use by two renewals, which `portRetentionMs` adds. */
  usedAt: number
}

export interface LocalPorts {
  /** Returns the port of a name. `open` are the ports of open tunnels. */
  assign(workspace: string, name: string, open: Iterable<number>): Promise<number | Rejection>
  renew(open: Iterable<number>): Promise<void>
  /** Nothing is written after this, because another process may use the folder. */
  close(): Promise<void>
}

export async function openLocalPorts(options: LocalPortOptions): Promise<LocalPorts> {
  const { folder, range, perWorkspace, clock = Date.now } = options
  const path = join(folder, FILE)
  await createFolder(folder)
  const unlock = await lockFolder(folder)
  const byPort = await readAssignments(path).catch(async (error) => {
    await unlock()
    throw error
  })
  const file = new StateFile(path, () => serialize([...byPort.values()]))
  let isClosed = false

  function markUsed(ports: Iterable<number>, minAgeMs: number): void {
    for (const port of ports) {
      const assignment = byPort.get(port)
      if (!assignment || clock() - assignment.usedAt < minAgeMs) continue
      assignment.usedAt = clock()
      file.markChanged()
    }
  }

  function deleteExpired(): void {
    const limit = clock() - portRetentionMs(options)
    for (const { port, usedAt } of byPort.values()) {
      if (usedAt >= limit) continue
      byPort.delete(port)
      file.markChanged()
    }
  }

  function findFreePort(): number | undefined {
    const size = range.last - range.first + 1
    const start = randomInt(size)
    for (let index = 0; index < size; index++) {
      const port = range.first + ((start + index) % size)
      if (!byPort.has(port)) return port
    }
    return undefined
  }

  function findOrAdd(workspace: string, name: string): number | Rejection {
    const assignments = [...byPort.values()].filter((each) => each.workspace === workspace)
    const existing = assignments.find((each) => each.name === name)
    if (existing) {
      markUsed([existing.port], PORT_RENEWAL_MS)
      return existing.port
    }
    if (assignments.length >= perWorkspace)
      return tooManyPorts(
        assignments.map((each) => each.name),
        options,
      )
    const port = findFreePort()
    if (port === undefined) return noFreePort(path)
    byPort.set(port, { port, workspace, name, usedAt: clock() })
    file.markChanged()
    return port
  }

  return {
    async assign(workspace, name, open) {
      if (isClosed) return STOPPING
      markUsed(open, PORT_RENEWAL_MS)
      deleteExpired()
      const port = findOrAdd(workspace, name)
      if (typeof port !== 'number') return port
      try {
        await file.save()
        return port
      } catch (error) {
        // The name keeps its port: other clients that open it may be waiting for the next write.
        return unsavedPort(error as Error)
      }
    },
    async renew(open) {
      if (isClosed) return
      markUsed(open, 0)
      deleteExpired()
      await file.save()
    },
    async close() {
      isClosed = true
      await file.settle()
      await unlock()
    },
  }
}

/** A file that is written when its state has changed. All changes during a write share the next one. */
class StateFile {
  readonly #path: string
  readonly #serialize: () => string
  #changes = 0
  #savedChanges = 0
  /** Never rejects. */
  #running: Promise<void> = Promise.resolve()
  #pending: Promise<void> | undefined

  constructor(path: string, serialize: () => string) {
    this.#path = path
    this.#serialize = serialize
  }

  markChanged(): void {
    this.#changes += 1
  }

  /** Resolves when the file has all changes until now. */
  async save(): Promise<void> {
    if (this.#savedChanges === this.#changes) return
    this.#pending ??= this.#running.then(() => {
      this.#pending = undefined
      const write = this.#write()
      this.#running = write.catch(() => {})
      return write
    })
    await this.#pending
  }

  /** Waits for writes that are in progress or pending. */
  async settle(): Promise<void> {
    await (this.#pending ?? this.#running).catch(() => {})
  }

  async #write(): Promise<void> {
    const changes = this.#changes
    // The write before this one may have included all changes.
    if (this.#savedChanges === changes) return
    await replaceFile(this.#path, this.#serialize())
    this.#savedChanges = changes
  }
}

const serialize = (assignments: readonly Assignment[]) =>
  `${JSON.stringify({ ports: assignments.map((each) => ({ ...each, usedAt: new Date(each.usedAt) })) }, undefined, 2)}\n`

/** Rejects if there is a file that cannot be read: without it, other names would get the ports. */
async function readAssignments(path: string): Promise<Map<number, Assignment>> {
  const text = await readFile(path, 'utf8').catch((error: NodeJS.ErrnoException) => {
    if (error.code !== 'ENOENT') throw error
  })
  return new Map((text === undefined ? [] : parse(path, text)).map((each) => [each.port, each]))
}

function parse(path: string, text: string): Assignment[] {
  try {
    const { ports } = JSON.parse(text) as { ports: (Omit<Assignment, 'usedAt'> & { usedAt: string })[] }
    const assignments = ports.map((each) => ({ ...each, usedAt: Date.parse(each.usedAt) }))
    if (assignments.every(isValid)) return assignments
  } catch {}
  throw new Error(
    `${path} has no valid list of the ports of TCP tunnels. Restore it; or delete it, and all names get new ports.`,
  )
}

const isValid = ({ port, workspace, name, usedAt }: Assignment) =>
  Number.isInteger(port) &&
  port >= 1 &&
  port <= 65_535 &&
  typeof workspace === 'string' &&
  typeof name === 'string' &&
  Number.isFinite(usedAt)
