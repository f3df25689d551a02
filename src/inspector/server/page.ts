// The static files of the page.
import { randomBytes } from 'node:crypto'
import type { ServerResponse } from 'node:http'
import { extname } from 'node:path'

/** Files that are built with the program. */
export interface PageFiles {
  readonly names: ReadonlySet<string>
  read(name: string): Promise<Buffer>
}

const INDEX = 'index.html'
const TYPES: Readonly<Record<string, string>> = {
  '.css': 'text/css; charset=utf-8',
  '.js': 'text/javascript; charset=utf-8',
  '.svg': 'image/svg+xml',
  '.woff2': 'font/woff2',
}

/** The component library inserts styles at run time; the nonce allows them. Images of bodies are data. */
const contentSecurityPolicy = (nonce: string) =>
  [
    "default-src 'none'",
    "script-src 'self'",
    `style-src 'self' 'nonce-${nonce}'`,
    "img-src 'self' data:",
    "font-src 'self'",
    "connect-src 'self'",
    "base-uri 'none'",
    "form-action 'none'",
    "frame-ancestors 'none'",
  ].join('; ')

export const hasPage = ({ names }: PageFiles) => names.has(INDEX)

/** False if there is no such file. */
export async function sendPageFile(
  response: ServerResponse,
  files: PageFiles,
  path: string,
): Promise<boolean> {
  const name = path === '/' ? INDEX : path.slice(1)
  if (!files.names.has(name)) return false
  if (name === INDEX) {
    const nonce = randomBytes(16).toString('base64url')
    const html = String(await files.read(INDEX)).replace('__CSP_NONCE__', nonce)
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': contentSecurityPolicy(nonce),
    })
    response.end(html)
    return true
  }
  const type = TYPES[extname(name)]
  if (type === undefined) return false
  const content = await files.read(name)
  response.writeHead(200, { 'content-type': type, 'content-security-policy': "default-src 'none'" })
  response.end(content)
  return true
}
