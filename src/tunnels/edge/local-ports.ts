// Ports of TCP tunnels of an edge without a control plane. They are stored in a file before a tunnel is
// opened, so that no restart gives the port of a name to another one.
import { randomInt } from 'node:crypto'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { createFolder, replaceFile } from '../../edge-sdk/folder.ts'
import { lockFolder } from '../../edge-sdk/folder-lock.ts'
import { type PortRange, type PortRules, portRetentionMs } from '../../net/tcp-ports.ts'
import { noFreePort, type Rejection, tooManyPorts, unsavedPort } from './rejections.ts'

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
  /** To within an hour. */
  usedAt: number
}

export interface LocalPorts {
  /** The port of a name. `open` are the ports of tunnels that are open. */
  assign(workspace: string, name: string, open: Iterable<number>): Promise<number | Rejection>
  renew(open: Iterable<number>): Promise<void>
  /** Another process may use the folder. */
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
  let saving = Promise.resolve()

  /** After the write in progress; with everything that is assigned by then. */
  function save(): Promise<void> {
    saving = saving.catch(() => {}).then(() => replaceFile(path, textOf([...byPort.values()])))
    return saving
  }

  function markUsed(ports: Iterable<number>): void {
    for (const port of ports) {
      const assignment = byPort.get(port)
      if (assignment) assignment.usedAt = clock()
    }
  }

  function deleteExpired(): void {
    const limit = clock() - portRetentionMs(options)
    for (const { port, usedAt } of byPort.values()) if (usedAt < limit) byPort.delete(port)
  }

  function freePort(): number | undefined {
    const size = range.last - range.first + 1
    const start = randomInt(size)
    for (let index = 0; index < size; index++) {
      const port = range.first + ((start + index) % size)
      if (!byPort.has(port)) return port
    }
    return undefined
  }

  return {
    async assign(workspace, name, open) {
      markUsed(open)
      deleteExpired()
      const own = [...byPort.values()].filter((each) => each.workspace === workspace)
      const existing = own.find((each) => each.name === name)
      if (!existing && own.length >= perWorkspace)
        return tooManyPorts(
          own.map((each) => each.name),
          options,
        )
      const port = existing?.port ?? freePort()
      if (port === undefined) return noFreePort(path)
      byPort.set(port, { port, workspace, name, usedAt: clock() })
      try {
        await save()
        return port
      } catch (error) {
        if (!existing) byPort.delete(port)
        return unsavedPort(error as Error)
      }
    },
    async renew(open) {
      markUsed(open)
      deleteExpired()
      await save()
    },
    async close() {
      await saving.catch(() => {})
      await unlock()
    },
  }
}

const textOf = (assignments: readonly Assignment[]) =>
  `${JSON.stringify({ ports: assignments.map((each) => ({ ...each, usedAt: new Date(each.usedAt) })) }, undefined, 2)}\n`

/** Rejects if there is a file that cannot be read: without it, ports would be given to other names. */
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
