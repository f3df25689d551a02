// The `clientError` event of Node's HTTP server: what the client did wrong, and whether it may get a
// response.
import type { Duplex } from 'node:stream'

export type ClientError = 'headers too large' | 'timeout' | 'malformed'

/** Undefined where no response may be sent: the socket must be destroyed. */
export function classifyClientError(code: string | undefined, socket: Duplex): ClientError | undefined {
  if (code === 'ECONNRESET' || !socket.writable) return undefined
  // Without any input, a response could be taken for that to a request which is about to arrive.
  if ((socket as Duplex & { bytesRead?: number }).bytesRead === 0) return undefined
  if (code === 'HPE_HEADER_OVERFLOW') return 'headers too large'
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return 'timeout'
  return 'malformed'
}
