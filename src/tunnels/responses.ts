// What the edge says itself: JSON to the other ends of tunnels, a line of text to visitors.
import { type IncomingMessage, type ServerResponse, STATUS_CODES } from 'node:http'
import type { Duplex } from 'node:stream'
import { hostOf } from './names.ts'

const CLOSED_WITHIN_MS = 2_000
const TEXT = {
  'content-type': 'text/plain; charset=utf-8',
  'x-content-type-options': 'nosniff',
  'cache-control': 'no-store',
}

export function sendJson(response: ServerResponse, status: number, body: unknown): void {
  // A request that turned out malformed meanwhile has its response.
  if (response.headersSent) return
  const text = JSON.stringify(body)
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(text),
    'cache-control': 'no-store',
  })
  response.end(text)
}

export function sendError(response: ServerResponse, status: number, words: string): void {
  // With the reason: one that could not be sent may have been set before.
  response.writeHead(status, STATUS_CODES[status], TEXT)
  response.end(`${words}\n`)
}

/** The same, where a request wanted to become a connection. */
export function sendRawError(socket: Duplex, status: number, words: string): void {
  const lines = Object.entries({ ...TEXT, connection: 'close' }).map(
    ([name, value]) => `${name}: ${value}\r\n`,
  )
  socket.write(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${lines.join('')}\r\n${words}\n`)
  closeGracefully(socket)
}

/** Sends what is left, lets whoever is there go by themselves, and waits for nobody who does not. */
export function closeGracefully(socket: Duplex): void {
  const patience = setTimeout(() => socket.destroy(), CLOSED_WITHIN_MS)
  socket.once('close', () => clearTimeout(patience))
  socket.once('end', () => socket.destroy())
  socket.resume()
  socket.end()
}

export interface Target {
  readonly host: string
  readonly path: string
}

export const NO_TARGET = 'The request is for no host, or for more than one.'

/** Where a request wants to go. Of two hosts one could be checked and the other believed, so there must be one. */
export function parseTarget({ rawHeaders, url = '' }: IncomingMessage): Target | undefined {
  const hosts = rawHeaders.filter(
    (_, index) => index % 2 === 1 && rawHeaders[index - 1]?.toLowerCase() === 'host',
  )
  if (hosts.length !== 1 || !hosts[0]) return undefined
  // The form that names a host a second time is for proxies.
  if (!url.startsWith('/') && url !== '*') return undefined
  return { host: hostOf(hosts[0]), path: url.split('?', 1)[0] as string }
}
