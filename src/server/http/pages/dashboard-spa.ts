// The dashboard: one HTML file for all of its pages and for unknown paths, and its assets, whose names
// contain a hash of their content.
import type { FastifyInstance, FastifyReply } from 'fastify'
import { withPolicy } from '../../../lib/http/page-policy.ts'
import type { ProgramFiles } from '../../../lib/program-files.ts'
import { Fault } from '../../domain/fault.ts'
import { sendFault } from '../server/errors.ts'
import { acceptsPage, basePath } from '../server/paths.ts'
import { PAGE_HEADERS } from './page-headers.ts'
import { serveFiles } from './static-files.ts'

/** The routes of web/src/app.tsx. */
const PAGES = [
  '/sign-in',
  '/forgot-password',
  '/link',
  '/device',
  '/authorize',
  '/account',
  '/w/:workspace',
  '/w/:workspace/:page(^(?:tunnels|keys|usage|members|webhooks|audit|settings)$)',
  '/w/:workspace/webhooks/:id',
]
const YEAR_S = 365 * 24 * 60 * 60

/** `files`: web/dist. `baseUrl`: the public URL of the server, whose path a proxy may remove. */
export async function registerDashboard(
  server: FastifyInstance,
  files: ProgramFiles,
  baseUrl?: string,
): Promise<void> {
  const html = files.names.has('index.html') ? String(await files.read('index.html')) : undefined
  const base = basePath(baseUrl)
  const send = (reply: FastifyReply) => (html ? sendPage(reply, html, base) : sendNotBuilt(reply))
  for (const url of ['/', ...PAGES.flatMap((page) => [page, `${page}/`])])
    server.get(url, (_request, reply) => send(reply))
  server.setNotFoundHandler((request, reply) =>
    html && acceptsPage(request) ? send(reply.code(404)) : sendFault(new Fault('not_found'), request, reply),
  )
  serveFiles(server, { files, folder: 'assets', cacheControl: `public, max-age=${YEAR_S}, immutable` })
}

function sendPage(reply: FastifyReply, html: string, base: string): FastifyReply {
  const page = withPolicy(html.replace('__BASE__', base), true)
  return reply
    .headers(PAGE_HEADERS)
    .header('content-security-policy', page.policy)
    .header('cache-control', 'no-store')
    .send(page.html)
}

export const sendNotBuilt = (reply: FastifyReply) =>
  reply
    .code(503)
    .header('content-type', 'text/plain; charset=utf-8')
    .send('The dashboard is not built. Run "npm run build".\n')
