// Files at paths that browsers, crawlers, password managers and security researchers try on any site, and the
// schema of adit.json.
import type { FastifyInstance } from 'fastify'
import { projectFileSchema } from '../../../contract/project-file.ts'
import type { ProgramFiles } from '../../../lib/program-files.ts'
import { DAY_MS } from '../../../lib/time.ts'
import { Fault } from '../../domain/fault.ts'
import { basePath } from '../server/paths.ts'

/** RFC 9116 advises less than a year. */
const CONTACT_VALID_MS = 180 * DAY_MS
const CACHE_DAY = 'public, max-age=86400'
const TEXT = 'text/plain; charset=utf-8'

interface SiteFilesOptions {
  /** web/dist */
  files: ProgramFiles
  /** Public URL of the server. */
  baseUrl: string | undefined
  /** URI for reports of vulnerabilities; undefined if the operator names none. */
  securityContact: string | undefined
  clock: () => number
}

export function registerSiteFiles(server: FastifyInstance, options: SiteFilesOptions): void {
  const { files, baseUrl, securityContact, clock } = options
  server.get('/robots.txt', (_request, reply) =>
    reply.type(TEXT).header('cache-control', CACHE_DAY).send('User-agent: *\nDisallow: /\n'),
  )
  // Editors in a browser fetch it from another origin.
  server.get('/adit.schema.json', (_request, reply) =>
    reply
      .type('application/schema+json')
      .headers({ 'cache-control': CACHE_DAY, 'access-control-allow-origin': '*' })
      .send(projectFileSchema),
  )
  server.get('/favicon.ico', async (_request, reply) => {
    const icon = await files.read('docs/icon.svg').catch(() => undefined)
    if (!icon) throw new Fault('not_found')
    return reply.type('image/svg+xml').header('cache-control', CACHE_DAY).send(icon)
  })
  server.get('/.well-known/change-password', (_request, reply) =>
    reply.header('cache-control', 'no-store').redirect(`${basePath(baseUrl)}/account`),
  )
  server.get('/.well-known/security.txt', (_request, reply) => {
    if (!securityContact) throw new Fault('not_found')
    const lines = [
      `Contact: ${securityContact}`,
      `Expires: ${new Date(clock() + CONTACT_VALID_MS).toISOString()}`,
      ...(baseUrl ? [`Canonical: ${baseUrl}/.well-known/security.txt`] : []),
      'Preferred-Languages: en',
    ]
    return reply
      .type(TEXT)
      .header('cache-control', CACHE_DAY)
      .send(`${lines.join('\n')}\n`)
  })
}
