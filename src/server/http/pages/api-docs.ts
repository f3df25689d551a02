// The API reference at /docs: Scalar on the OpenAPI document of this server, built into web/dist. All of its
// files come from this server, so it works offline, and none is read before it is requested.
import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import staticFiles from '@fastify/static'
import type { FastifyInstance } from 'fastify'
import { basePath } from '../server/paths.ts'
import { sendNotBuilt } from './dashboard-spa.ts'
import { PAGE_HEADERS } from './page-headers.ts'

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

/** `folder`: web/dist. `baseUrl`: the public URL of the API, which the page may call. */
export async function registerApiDocs(
  server: FastifyInstance,
  folder: string,
  baseUrl?: string,
): Promise<void> {
  const root = join(folder, 'docs')
  const policy = contentSecurityPolicy(baseUrl ? new URL(baseUrl).origin : '')
  let html: string | undefined
  server.get('/docs', async (_request, reply) => {
    html ??= await readFile(join(root, 'index.html'), 'utf8').catch(() => undefined)
    if (!html) return sendNotBuilt(reply)
    return reply
      .headers(PAGE_HEADERS)
      .header('content-security-policy', policy)
      .header('cache-control', 'no-cache')
      .send(html.replace('__BASE__', basePath(baseUrl)))
  })
  if (!existsSync(root)) return
  await server.register(staticFiles, {
    root,
    prefix: '/docs/',
    decorateReply: false,
    index: false,
    preCompressed: true,
    // The names stay the same across versions: revalidate each time.
    cacheControl: false,
    setHeaders: (reply) => reply.header('cache-control', 'no-cache'),
  })
}
