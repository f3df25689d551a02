// Hands out the client: /install.sh, and below /install/ the files that it downloads. These are the npm
// package of the client, which is built with the program, and executables that the operator has put into a
// folder.
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FastifyInstance } from 'fastify'
import { CLIENT_PACKAGE, EXECUTABLES } from '../../../../lib/client-package.ts'
import type { ProgramFiles } from '../../../../lib/program-files.ts'
import { Fault } from '../../../domain/fault.ts'
import { installScript } from './script.ts'

interface InstallOptions {
  /** With the package of the client. */
  files: ProgramFiles
  /** Folder of the executables. It need not exist. */
  executables: string
  /** The public URL of this server. */
  address: () => string
}

export function registerInstall(server: FastifyInstance, options: InstallOptions): void {
  const { files, executables, address } = options
  const tarball = `${CLIENT_PACKAGE}.tgz`
  const checksum = createChecksums()

  async function listDownloads(): Promise<Map<string, string>> {
    const downloads = new Map<string, string>()
    if (files.names.has(tarball)) downloads.set(tarball, hash(await files.read(tarball)))
    for (const name of EXECUTABLES) {
      const sum = await checksum(join(executables, name))
      if (sum) downloads.set(name, sum)
    }
    return downloads
  }

  server.get('/install.sh', async (_request, reply) => {
    const downloads = await listDownloads()
    if (downloads.size === 0)
      throw new Fault('unavailable', {
        message: 'The client is not built. Run `npm run build` on the server.',
      })
    return reply
      .headers({ 'content-type': 'text/x-shellscript; charset=utf-8', 'cache-control': 'no-cache' })
      .send(installScript(address(), downloads))
  })
  server.get(`/install/${tarball}`, async (_request, reply) => {
    if (!files.names.has(tarball)) return reply.callNotFound()
    return reply
      .headers({ 'content-type': 'application/gzip', 'cache-control': 'no-cache' })
      .send(await files.read(tarball))
  })
  for (const name of EXECUTABLES)
    server.get(`/install/${name}`, async (_request, reply) => {
      const path = join(executables, name)
      const size = await fileSize(path)
      if (size === undefined) return reply.callNotFound()
      return reply
        .headers({ 'content-type': 'application/gzip', 'cache-control': 'no-cache', 'content-length': size })
        .send(createReadStream(path, { end: Math.max(size - 1, 0) }))
    })
}

const hash = (content: Buffer): string => createHash('sha256').update(content).digest('hex')

const fileSize = async (path: string): Promise<number | undefined> => {
  const found = await stat(path).catch(() => undefined)
  return found?.isFile() ? found.size : undefined
}

/** SHA-256 of large files, computed again only when a file has changed. Undefined if there is none. */
function createChecksums() {
  const known = new Map<string, { version: string; sum: Promise<string> }>()
  return async (path: string): Promise<string | undefined> => {
    const found = await stat(path).catch(() => undefined)
    if (!found?.isFile()) return undefined
    const version = `${found.size} ${found.mtimeMs} ${found.ino}`
    const cached = known.get(path)
    if (cached?.version === version) return cached.sum
    const sum = hashFile(path)
    known.set(path, { version, sum })
    sum.catch(() => known.delete(path))
    return sum
  }
}

async function hashFile(path: string): Promise<string> {
  const hashing = createHash('sha256')
  await pipeline(createReadStream(path), hashing)
  return hashing.digest('hex')
}
