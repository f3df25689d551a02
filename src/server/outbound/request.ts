// Sends one request to an address that was checked, with limits of time and response size. Redirects are not
// followed: their target would have to be checked too.
import type { IncomingHttpHeaders, IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect, tooMuchReceived } from './connection.ts'
import type { Targets } from './targets.ts'

// A static import of `node:http` would also load Node's `fetch` client and delay the start by 40 ms.
const http = process.getBuiltinModule('node:http')
const https = process.getBuiltinModule('node:https')

/** A longer response is cut off. */
const RESPONSE_BYTES_MAX = 16 * 1_024
const HEADER_BYTES_MAX = 16 * 1_024
/** Includes informational responses, empty lines and chunk extensions, which Node does not limit. */
const RECEIVED_BYTES_MAX = HEADER_BYTES_MAX + RESPONSE_BYTES_MAX

interface OutboundRequest {
  method: 'GET' | 'POST'
  headers: Record<string, string>
  body?: string
}

interface Received {
  status: number
  headers: IncomingHttpHeaders
  body: Buffer
}

/** The signal covers DNS, and everything up to the end of the response. */
export async function sendRequest(
  url: URL,
  request: OutboundRequest,
  { targets, signal }: { targets: Targets; signal: AbortSignal },
): Promise<Received> {
  const addresses = await withAbort(targets.resolve(url), signal)
  return exchange(url, request, addresses, signal)
}

const withAbort = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })

function exchange(
  url: URL,
  { method, headers, body }: OutboundRequest,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? https.request : http.request
    const request = send(url, {
      method,
      headers: { ...headers, ...(body !== undefined && { 'content-length': Buffer.byteLength(body) }) },
      // Not a kept-alive connection: its address may no longer be allowed.
      createConnection: () => connect(url, addresses),
      maxHeaderSize: HEADER_BYTES_MAX,
      signal,
    })
    // Every request ends with one of error, close, upgrade and response, so none waits forever.
    const close = () => reject(new Error('the connection was closed without a response'))
    request.on('error', reject)
    request.on('close', close)
    request.on('socket', limitReceived)
    request.on('upgrade', ({ statusCode = 0, headers: received }, socket) => {
      socket.destroy()
      resolve({ status: statusCode, headers: received, body: Buffer.alloc(0) })
    })
    request.on('response', (response) => {
      // A later error is not a failure, because the status is known: see `collect`.
      request.off('close', close).off('error', reject)
      request.on('error', () => {})
      collect(response, resolve)
    })
    request.end(body)
  })
}

/** Closes the connection beyond the limit. A response that is complete by then counts. */
function limitReceived(socket: Duplex): void {
  let bytes = 0
  socket.on('data', (chunk: Buffer) => {
    bytes += chunk.length
    if (bytes > RECEIVED_BYTES_MAX) socket.destroy(tooMuchReceived())
  })
}

/** The status decides, so a body that is too long, slow or aborted is not a failure. */
function collect(response: IncomingMessage, resolve: (received: Received) => void): void {
  const chunks: Buffer[] = []
  let bytes = 0
  const finish = () => {
    response.destroy()
    const body = Buffer.concat(chunks).subarray(0, RESPONSE_BYTES_MAX)
    resolve({ status: response.statusCode ?? 0, headers: response.headers, body })
  }
  response.on('data', (chunk: Buffer) => {
    chunks.push(chunk)
    bytes += chunk.length
    if (bytes >= RESPONSE_BYTES_MAX) finish()
  })
  response.on('end', finish)
  response.on('error', finish)
  response.on('close', finish)
}
