// Hands out the client: /install.sh, and below /install/ the files that it downloads. These are the npm
// package of the client, which is built with the program, and executables that the operator has put into a
// folder.
import { createHash, hash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { stat } from 'node:fs/promises'
import { join } from 'node:path'
import { pipeline } from 'node:stream/promises'
import type { FastifyInstance, FastifyReply } from 'fastify'
import { CLIENT_PACKAGE, EXECUTABLES } from '../../../../lib/client-package.ts'
import type { ProgramFiles } from '../../../../lib/program-files.ts'
import { Fault } from '../../../domain/fault.ts'
import { installScript } from './script.ts'

interface InstallOptions {
  /** The folder dist, with the package of the client. */
  files: ProgramFiles
  /** Folder of the executables. It need not exist. */
  executables: string
  /** The public URL of this server. */
  publicUrl: () => string
}

export function registerInstall(server: FastifyInstance, options: InstallOptions): void {
  const { files, executables, publicUrl } = options
  const tarball = `${CLIENT_PACKAGE}.tgz`
  const tarballPath = files.path(tarball)
  const checksum = createChecksums()
  let embeddedSum: string | undefined

  async function tarballChecksum(): Promise<string | undefined> {
    if (tarballPath !== undefined) return checksum(tarballPath)
    if (files.names.has(tarball)) embeddedSum ??= hash('sha256', await files.read(tarball))
    return embeddedSum
  }

  async function listDownloads(): Promise<Map<string, string>> {
    const downloads = new Map<string, string>()
    const add = (name: string, sum: string | undefined) => sum && downloads.set(name, sum)
    add(tarball, await tarballChecksum())
    for (const name of EXECUTABLES) add(name, await checksum(join(executables, name)))
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
      .send(installScript(publicUrl(), downloads))
  })
  server.get(`/install/${tarball}`, async (_request, reply) => {
    if (tarballPath !== undefined) return sendFile(reply, tarballPath)
    if (!files.names.has(tarball)) return reply.callNotFound()
    return reply.headers(DOWNLOAD).send(await files.read(tarball))
  })
  for (const name of EXECUTABLES)
    server.get(`/install/${name}`, (_request, reply) => sendFile(reply, join(executables, name)))
}

const DOWNLOAD = { 'content-type': 'application/gzip', 'cache-control': 'no-cache' }

async function sendFile(reply: FastifyReply, path: string) {
  const found = await stat(path).catch(() => undefined)
  if (!found?.isFile()) return reply.callNotFound()
  const { size } = found
  return reply
    .headers({ ...DOWNLOAD, 'content-length': size })
    .send(createReadStream(path, { end: Math.max(size - 1, 0) }))
}

/** SHA-256 of files, cached until a file changes. Undefined if there is no file. */
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
  const sha256 = createHash('sha256')
  await pipeline(createReadStream(path), sha256)
  return sha256.digest('hex')
}
