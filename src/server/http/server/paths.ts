// Paths of requests and of the public URL.
import type { FastifyRequest } from 'fastify'

/** `/device` and `/authorize` are pages. */
const API_PATHS = /^\/(?:(?:api|edge|workspace\/v1|dashboard\/api|mcp)(?:[/?]|$)|device\/|oauth\/)/

/** The path of the public base URL, which a proxy in front may remove from requests: `/adit`, or nothing. */
export const basePath = (baseUrl: string | undefined): string =>
  baseUrl ? new URL(baseUrl).pathname.replace(/\/$/, '') : ''

/** Decodes percent-encoded ASCII, as the router does. */
export const decodeAscii = (url: string): string =>
  url.replace(/%[2-7][0-9a-f]/gi, (encoded) => decodeURIComponent(encoded))

/**
 * Whether an unknown path shows the dashboard's 404 page: in a browser, outside of the APIs. Others get JSON.
 */
export const acceptsPage = ({ method, url, headers: { accept } }: FastifyRequest): boolean =>
  (method === 'GET' || method === 'HEAD') &&
  accept?.includes('text/html') === true &&
  !API_PATHS.test(decodeAscii(url))
