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
const VARIANTS = { br: '.br', gzip: '.gz' }
/** The smallest first. */
const ENCODINGS = ['br', 'gzip'] as const

interface StaticFiles {
  files: ProgramFiles
  /** Of the files to serve, which is also the first part of their paths. */
  folder: string
  cacheControl: string
}

/** Only files that were there at the start and have a known type: others do not exist. */
export function serveFiles(server: FastifyInstance, { files, folder, cacheControl }: StaticFiles): void {
  const etags = new Map<string, string>()
  server.get<{ Params: { '*': string } }>(`/${folder}/*`, async (request, reply) => {
    const name = `${folder}/${request.params['*']}`
    const type = TYPES[extname(name)]
    if (!type || !files.names.has(name)) return reply.callNotFound()
    const { 'accept-encoding': accepted, 'if-none-match': known } = request.headers
    const encoding = ENCODINGS.find(
      (one) => acceptsEncoding(accepted, one) && files.names.has(name + VARIANTS[one]),
    )
    const variant = encoding ? name + VARIANTS[encoding] : name
    const content = await files.read(variant).catch(() => undefined)
    // Deleted by a later build.
    if (!content) return reply.callNotFound()
    const etag = etags.get(variant) ?? createEtag(content)
    etags.set(variant, etag)
    reply.headers({ etag, vary: 'accept-encoding', 'cache-control': cacheControl })
    if (etagMatches(known, etag)) return reply.code(304).send()
    if (encoding) reply.header('content-encoding', encoding)
    return reply.header('content-type', type).send(content)
  })
}
