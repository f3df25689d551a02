// Files of the dashboard and the API reference. The build has compressed them: the client gets the smallest
// variant that it accepts.
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { ProgramFiles } from '../../../lib/program-files.ts'
import { acceptsEncoding } from '../operations/compression.ts'
import { createEtag, etagMatches } from '../operations/etag.ts'

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
/** The smallest first. */
const VARIANTS = [
  { encoding: 'br', suffix: '.br' },
  { encoding: 'gzip', suffix: '.gz' },
] as const

interface StaticFiles {
  files: ProgramFiles
  /** The folder of the files to serve, in `files` and in their URLs. */
  folder: string
  cacheControl: string
}

/** Serves only files that existed at the start and have a known type. */
export function serveFiles(server: FastifyInstance, { files, folder, cacheControl }: StaticFiles): void {
  const etags = new Map<string, string>()
  server.get<{ Params: { '*': string } }>(`/${folder}/*`, async (request, reply) => {
    const name = `${folder}/${request.params['*']}`
    const type = TYPES[extname(name)]
    if (!type || !files.names.has(name)) return reply.callNotFound()
    const { 'accept-encoding': accepted, 'if-none-match': ifNoneMatch } = request.headers
    const variant = VARIANTS.find(
      ({ encoding, suffix }) => acceptsEncoding(accepted, encoding) && files.names.has(name + suffix),
    )
    const file = name + (variant?.suffix ?? '')
    const content = await files.read(file).catch(() => undefined)
    // A later build may have deleted the file.
    if (!content) return reply.callNotFound()
    const etag = etags.get(file) ?? createEtag(content)
    etags.set(file, etag)
    reply.headers({ etag, vary: 'accept-encoding', 'cache-control': cacheControl })
    if (etagMatches(ifNoneMatch, etag)) return reply.code(304).send()
    if (variant) reply.header('content-encoding', variant.encoding)
    return reply.header('content-type', type).send(content)
  })
}
