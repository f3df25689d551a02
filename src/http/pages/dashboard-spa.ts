// The dashboard's page: one HTML file for every address of it, and its scripts and styles, whose names change with their
// contents.
import { randomBytes } from 'node:crypto'
import { existsSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import staticFiles from '@fastify/static'
import type { FastifyInstance, FastifyReply } from 'fastify'

/** Addresses of the page; what comes after them is its own affair. */
const PAGES = ['/', '/sign-in', '/forgotten', '/link', '/account', '/w/*']
const YEAR_S = 365 * 24 * 60 * 60

/** Styles that the page's library makes while it runs are let through by a number that nobody can guess. */
const contentSecurityPolicy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'self'",
    "form-action 'self'",
    "frame-ancestors 'none'",
  ].join('; ')

/** `folder`: where the page was built. `baseUrl`: where people reach the server, for a path that a proxy takes off. */
export async function registerDashboard(
  server: FastifyInstance,
  folder: string,
  baseUrl?: string,
): Promise<void> {
  const file = join(folder, 'index.html')
  const html = existsSync(file) ? readFileSync(file, 'utf8') : undefined
  const base = baseUrl ? new URL(baseUrl).pathname.replace(/\/$/, '') : ''
  for (const url of PAGES)
    server.get(url, (_request, reply) => (html ? sendPage(reply, html, base) : sendNotBuilt(reply)))
  if (!html) return
  await server.register(staticFiles, {
    root: join(folder, 'assets'),
    prefix: '/assets/',
    decorateReply: false,
    index: false,
    preCompressed: true,
    maxAge: YEAR_S * 1000,
    immutable: true,
  })
}

function sendPage(reply: FastifyReply, html: string, base: string): FastifyReply {
  const nonce = randomBytes(16).toString('base64url')
  return reply
    .header('content-type', 'text/html; charset=utf-8')
    .header('content-security-policy', contentSecurityPolicy(nonce))
    .header('cache-control', 'no-store')
    .header('referrer-policy', 'no-referrer')
    .send(html.replace('__CSP_NONCE__', nonce).replace('__BASE__', base))
}

const sendNotBuilt = (reply: FastifyReply) =>
  reply
    .code(503)
    .header('content-type', 'text/plain; charset=utf-8')
    .send('The dashboard is not built here. "npm start" builds it, and so does "npm run build".\n')
