// Prebuilt heads of responses from the cache: length, request id and date are appended for each response.
import type { ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { OperationDurations } from '../../../lib/metrics/request-durations.ts'

// Not a static import, which would also load Node's `fetch` client.
const { validateHeaderValue } = process.getBuiltinModule('node:http')

/** The head that Fastify sent, up to the headers that differ from response to response. */
export interface CachedHead {
  readonly route: string | undefined
  readonly durations: OperationDurations | undefined
  /** Ends with `content-length: `. */
  readonly text: string
}

/** Validates the headers, as `writeHead` does, because `setHead` does not. */
export function toCachedHead(reply: FastifyReply): CachedHead {
  const { 'x-request-id': _requestId, 'content-length': _length, ...headers } = reply.getHeaders()
  const { url, config } = reply.request.routeOptions
  const { keepAliveTimeout } = reply.server.server
  const fields = Object.entries(headers).map(([name, value]) => {
    validateHeaderValue(name, String(value))
    return `${name}: ${value}`
  })
  const lines = [
    'HTTP/1.1 200 OK',
    ...fields,
    'Connection: keep-alive',
    `Keep-Alive: timeout=${keepAliveTimeout / 1000}`,
    'content-length: ',
  ]
  return { route: url, durations: config.durations, text: lines.join('\r\n') }
}

/** Sets the private field in which `writeHead` stores the same text, after it has validated each header. */
export function setHead(response: ServerResponse, head: CachedHead, bytes: number, requestId: string): void {
  ;(response as unknown as { _header: string })._header =
    `${head.text}${bytes}\r\nx-request-id: ${requestId}\r\nDate: ${httpDate()}\r\n\r\n`
}

let dateSecond = 0
let date = ''

/** For the Date header; it changes once a second. */
function httpDate(): string {
  const second = Math.floor(Date.now() / 1000)
  if (second !== dateSecond) {
    dateSecond = second
    date = new Date(second * 1000).toUTCString()
  }
  return date
}
