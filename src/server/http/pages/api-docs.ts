// The API reference at /docs: Scalar on the OpenAPI document of this server, built into web/dist. All of its
// files come from this server, so it works offline, and none is read before it is requested.
import type { FastifyInstance } from 'fastify'
import type { ProgramFiles } from '../../../lib/program-files.ts'
import { basePath } from '../server/paths.ts'
import { sendNotBuilt } from './dashboard-spa.ts'
import { PAGE_HEADERS } from './page-headers.ts'
import { serveFiles } from './static-files.ts'

/** Scalar sets styles inline as it renders. Scripts are files of this server only. */
const contentSecurityPolicy = (apiOrigin: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    "style-src 'self' 'unsafe-inline'",
    "img-src 'self' data:",
    `connect-src 'self' ${apiOrigin}`.trim(),
    "base-uri 'self'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

/** `files`: web/dist. `baseUrl`: the public URL of the API, which the page may call. */
export function registerApiDocs(server: FastifyInstance, files: ProgramFiles, baseUrl?: string): void {
  const policy = contentSecurityPolicy(baseUrl ? new URL(baseUrl).origin : '')
  let html: string | undefined
  server.get('/docs', async (_request, reply) => {
    html ??= await files.read('docs/index.html').then(String, () => undefined)
    if (!html) return sendNotBuilt(reply)
    return reply
      .headers(PAGE_HEADERS)
      .header('content-security-policy', policy)
      .header('cache-control', 'no-cache')
      .send(html.replace('__BASE__', basePath(baseUrl)))
  })
  // The names stay the same across versions: revalidate each time.
  serveFiles(server, { files, folder: 'docs', cacheControl: 'no-cache' })
}
