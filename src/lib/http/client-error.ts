// The `clientError` event of Node's HTTP server: what the client did wrong, and whether it may get a
// response.
import type { Duplex } from 'node:stream'

export type ClientError = 'headers too large' | 'timeout' | 'malformed'

/** Undefined if no response may be sent: then destroy the socket. */
export function classifyClientError(code: string | undefined, socket: Duplex): ClientError | undefined {
  if (code === 'ECONNRESET' || !socket.writable) return undefined
  // Before any input, the client could take a response for that to a request which it is about to send.
  if ((socket as Duplex & { bytesRead?: number }).bytesRead === 0) return undefined
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers too large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'timeout'
  return 'malformed'
}
