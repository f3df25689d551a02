// Files of the dashboard and the API reference. The build has compressed them: the client gets the smallest
// variant that it accepts.
import { createHash } from 'node:crypto'
import { extname } from 'node:path'
import type { FastifyInstance } from 'fastify'
import type { ProgramFiles } from '../../../lib/program-files.ts'

const TYPES: Record<string, string> = {
  '.js': 'text/javascript; charset=utf-8',
  '.css': 'text/css; charset=utf-8',
  '.svg': 'image/svg+xml',
}
const VARIANTS = { br: '.br', gzip: '.gz' }

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
    const { 'accept-encoding': accepted = '', 'if-none-match': known } = request.headers
    const encoding = chooseEncoding(String(accepted), (variant) => files.names.has(name + VARIANTS[variant]))
    const variant = encoding ? name + VARIANTS[encoding] : name
    const content = await files.read(variant).catch(() => undefined)
    // Deleted by a later build.
    if (!content) return reply.callNotFound()
    const etag = etags.get(variant) ?? `"${createHash('sha256').update(content).digest('base64url')}"`
    etags.set(variant, etag)
    reply.headers({ etag, vary: 'accept-encoding', 'cache-control': cacheControl })
    if (known === etag) return reply.code(304).send()
    if (encoding) reply.header('content-encoding', encoding)
    return reply.header('content-type', type).send(content)
  })
}

type Encoding = keyof typeof VARIANTS

/** Undefined if the file is sent without compression. */
function chooseEncoding(accepted: string, exists: (encoding: Encoding) => boolean): Encoding | undefined {
  const names = accepted.split(',').filter((part) => !/;\s*q=0(\.0*)?\s*$/.test(part))
  const listed = new Set(names.map((part) => part.split(';', 1)[0]?.trim().toLowerCase()))
  return (['br', 'gzip'] as const).find((encoding) => listed.has(encoding) && exists(encoding))
}
