// The folder in which each program that records has a socket, for programs of the same user. Nobody else may
// enter it. On Windows, whose sockets are named pipes, a file there has the name of the pipe, which others
// cannot guess.

import { randomBytes } from 'node:crypto'
import { chmodSync, lstatSync, readdirSync, rmSync, writeFileSync } from 'node:fs'
import { connect, type Server } from 'node:net'
import { join } from 'node:path'

const SUFFIX = '.sock'
const NAME = /^\d+-[\w-]+\.sock$/
const SOCKET_MODE = 0o600
const FOLDER_MODE = 0o700
/** A longer path does not fit into a socket address. */
const PATH_BYTES_MAX = 103
const SOCKETS_MAX = 100
const isWindows = process.platform === 'win32'

/** The message is for the user. */
class FolderNotUsable extends Error {
  override name = 'FolderNotUsable'
}

export interface LocalSocket {
  /** For `listen` and `connect`. */
  readonly address: string
  readonly file: string
}

const toSocket = (folder: string, name: string): LocalSocket => ({
  address: isWindows ? `\\\\.\\pipe\\adit-${name.slice(0, -SUFFIX.length)}` : join(folder, name),
  file: join(folder, name),
})

/** Listens on a new socket in the folder, which exists. Resolves with a function that removes it. */
export async function listenForUser(server: Server, folder: string): Promise<() => void> {
  secureFolder(folder)
  await removeDead(folder)
  const socket = toSocket(folder, `${process.pid}-${randomBytes(16).toString('base64url')}${SUFFIX}`)
  if (Buffer.byteLength(socket.address) > PATH_BYTES_MAX)
    throw new FolderNotUsable(
      `The path ${folder} is too long for a socket. Set XDG_RUNTIME_DIR to a shorter one.`,
    )
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject)
    server.listen(socket.address, () => {
      server.off('error', reject)
      resolve()
    })
  })
  if (isWindows) writeFileSync(socket.file, '', { mode: SOCKET_MODE })
  else chmodSync(socket.file, SOCKET_MODE)
  return () => rmSync(socket.file, { force: true })
}

/** The sockets of programs that run. */
export async function findSockets(folder: string): Promise<LocalSocket[]> {
  if (!lstatSync(folder, { throwIfNoEntry: false })) return []
  secureFolder(folder)
  return removeDead(folder)
}

/** Others may have put sockets into the folder before it was closed to them. */
function isOwn(file: string): boolean {
  // A program that ends removes its socket.
  const found = lstatSync(file, { throwIfNoEntry: false })
  return found !== undefined && (process.getuid === undefined || found.uid === process.getuid())
}

/** Returns those that are not dead: a program that was killed leaves its socket. */
async function removeDead(folder: string): Promise<LocalSocket[]> {
  const names = readdirSync(folder).filter((name) => NAME.test(name) && isOwn(join(folder, name)))
  const sockets = names.slice(0, SOCKETS_MAX).map((name) => toSocket(folder, name))
  const states = await Promise.all(sockets.map(isDead))
  for (const [index, { file }] of sockets.entries()) if (states[index]) rmSync(file, { force: true })
  return sockets.filter((_, index) => !states[index])
}

const isDead = ({ address }: LocalSocket) =>
  new Promise<boolean>((resolve) => {
    const connection = connect(address, () => {
      connection.destroy()
      resolve(false)
    })
    connection.on('error', ({ code }: NodeJS.ErrnoException) =>
      resolve(code === 'ECONNREFUSED' || code === 'ENOENT'),
    )
  })

/** Throws if somebody else could put a socket there; sockets that are there may be of others. */
function secureFolder(folder: string): void {
  const found = lstatSync(folder)
  if (!found.isDirectory()) throw new FolderNotUsable(`${folder} is not a folder. Remove it and try again.`)
  // Windows has no user IDs; the folder is in the profile of the user.
  if (process.getuid === undefined) return
  if (found.uid !== process.getuid())
    throw new FolderNotUsable(`${folder} belongs to another user. Set XDG_RUNTIME_DIR to a folder of yours.`)
  if ((found.mode & 0o777) !== FOLDER_MODE) chmodSync(folder, FOLDER_MODE)
}
