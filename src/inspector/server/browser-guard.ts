// Which requests of browsers are processed: those of the page itself. A site that resolves its name to
// 127.0.0.1 (DNS rebinding) has another Host, and every other site another Origin.
import type { IncomingHttpHeaders } from 'node:http'

/** What browsers say of requests by the page, and by the user. */
const SITES = new Set(['same-origin', 'none'])

export function isFromPage(headers: IncomingHttpHeaders, port: number, isApi: boolean): boolean {
  const { host = '', origin, 'sec-fetch-site': site } = headers
  if (host !== `127.0.0.1:${port}` && host !== `localhost:${port}`) return false
  if (origin !== undefined && origin !== `http://${host}`) return false
  return !isApi || site === undefined || SITES.has(String(site))
}
