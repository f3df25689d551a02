// The static files of the page.
import type { ServerResponse } from 'node:http'
import { extname } from 'node:path'
import { withPolicy } from '../../lib/http/page-policy.ts'

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
    const { html, policy } = withPolicy(String(await files.read(INDEX)), false)
    response.writeHead(200, {
      'content-type': 'text/html; charset=utf-8',
      'content-security-policy': policy,
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
