// Responses that the edge generates: JSON for its control API, and errors for visitors.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { GracefulClose } from '../../lib/net/graceful-close.ts'
import { normalizeHost } from '../admission/names.ts'
import { errorBody } from '../error-responses/bodies.ts'
import { causes, type VisitorError } from '../error-responses/causes.ts'

export const CLOSE = { discardBytesMax: 64 * 1024 * 1024, timeoutMs: 2_000 }
const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  // An error response was already sent if the rest of the request was malformed.
  if (response.headersSent) return
  const text = JSON.stringify(body)
  response.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

export function sendError(response: ServerResponse, error: VisitorError): void {
  const { status } = causes[error.cause]
  const { headers, body } = errorBody(error, response.req.headers.accept)
  // The reason is set explicitly: a failed writeHead may have left an invalid one.
  response.writeHead(status, STATUS_CODES[status], headers)
  response.end(body)
}

/** sendError for sockets without a ServerResponse. `request` is undefined if it could not be parsed. */
export function sendRawError(
  socket: Duplex,
  request: IncomingMessage | undefined,
  error: VisitorError,
): void {
  const { headers, body } = errorBody(error, request?.headers.accept)
  sendRaw(socket, causes[error.cause].status, headers, request?.method === 'HEAD' ? '' : body)
}

/** sendJson for sockets without a ServerResponse. */
export const sendRawJson = (socket: Duplex, status: number, body: unknown) =>
  sendRaw(socket, status, JSON_HEADERS, JSON.stringify(body))

function sendRaw(socket: Duplex, status: number, headers: Record<string, string>, body: string): void {
  const lines = Object.entries({ ...headers, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${body}`)
  closeGracefully(socket)
}

export const closeGracefully = (socket: Duplex) => new GracefulClose(socket, CLOSE).start()

interface Target {
  readonly host: string
  readonly path: string
}

export const INVALID_TARGET: VisitorError = {
  cause: 'malformed_request',
  detail: 'It must have exactly one Host header and a path.',
}

/** Host and path of a request. Rejects several hosts, because another parser might choose a different one. */
export function parseTarget({ rawHeaders, url = '' }: IncomingMessage): Target | undefined {
  const hosts = rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'host',
  )
  if (hosts.length !== 1 || !hosts[0]) return undefined
  // The absolute form, which names a host a second time, is for forward proxies.
  if (!url.startsWith('/') && url !== '*') return undefined
  return { host: normalizeHost(hosts[0]), path: url.split('?', 1)[0] as string }
}
