// Responses that the edge generates: JSON for its control API, plain text for proxied requests, and what the
// access rules of a tunnel reject.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { GracefulClose } from '../../lib/net/graceful-close.ts'
import { type Denial, denialResponse } from '../access/denial.ts'
import { normalizeHost } from '../admission/names.ts'

export const CLOSE = { discardBytesMax: 64 * 1024 * 1024, timeoutMs: 2_000 }
const TEXT_HEADERS = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

const JSON_HEADERS = { 'content-type': 'application/json', 'cache-control': 'no-store' }

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  // A request that turned out to be malformed meanwhile has its response.
  if (response.headersSent) return
  const text = JSON.stringify(body)
  response.writeHead(status, { ...JSON_HEADERS, 'content-length': Buffer.byteLength(text) })
  response.end(text)
}

export function sendError(response: ServerResponse, status: number, message: string): void {
  // The reason is set explicitly: a failed writeHead may have left an invalid one.
  response.writeHead(status, STATUS_CODES[status], TEXT_HEADERS)
  response.end(`${message}\n`)
}

export function sendDenial(response: ServerResponse, request: IncomingMessage, denial: Denial): void {
  const { headers, body } = denialResponse(denial, request)
  response.writeHead(denial.status, { ...headers, 'content-length': Buffer.byteLength(body) })
  response.end(body)
}

/** sendDenial for sockets without a ServerResponse. */
export function sendRawDenial(socket: Duplex, request: IncomingMessage, denial: Denial): void {
  const { headers, body } = denialResponse(denial, request)
  sendRaw(socket, denial.status, headers, body)
}

/** sendError for sockets without a ServerResponse, such as those of upgrades. */
export const sendRawError = (socket: Duplex, status: number, message: string) =>
  sendRaw(socket, status, TEXT_HEADERS, `${message}\n`)

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

export const INVALID_TARGET = 'The request must have exactly one Host header and a path.'

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
