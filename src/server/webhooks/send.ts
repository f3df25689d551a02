// Sends one webhook request, with limits of time and response size. Redirects are not followed: their target
// would have to be checked too, and Standard Webhooks counts them as failures.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import { connect, tooMuchReceived } from './connection.ts'
import { TargetError, type Targets } from './targets.ts'

// A static import of `node:http` would also load Node's `fetch` client and delay the start by 40 ms.
const http = process.getBuiltinModule('node:http')
const https = process.getBuiltinModule('node:https')

/** Includes DNS, and everything up to the end of the response. */
export const SEND_TIMEOUT_MS = 10_000
/** A longer response is cut off. */
const RESPONSE_BYTES_MAX = 16 * 1_024
const HEADER_BYTES_MAX = 16 * 1_024
/** Includes informational responses, empty lines and chunk extensions, which Node does not limit. */
const RECEIVED_BYTES_MAX = HEADER_BYTES_MAX + RESPONSE_BYTES_MAX
const LOGGED_CHARS_MAX = 1_000

interface WebhookRequest {
  url: string
  headers: Record<string, string>
  body: string
}

export interface SendResult {
  /** Null without a response. */
  status: number | null
  /** First 1,000 characters of the response body, for the log of deliveries. */
  response: string | null
  /** Why there is no response. */
  error: string | null
}

interface SendOptions {
  targets: Targets
  /** Aborted at shutdown. */
  signal: AbortSignal
  timeoutMs?: number
}

/** Never rejects. */
export async function sendWebhook(
  webhook: WebhookRequest,
  { targets, signal, timeoutMs = SEND_TIMEOUT_MS }: SendOptions,
): Promise<SendResult> {
  const timeout = AbortSignal.timeout(timeoutMs)
  const aborted = AbortSignal.any([signal, timeout])
  try {
    const url = new URL(webhook.url)
    const addresses = await withAbort(targets.resolve(url), aborted)
    const { status, body } = await post(url, webhook, addresses, aborted)
    return { status, response: printable(body), error: null }
  } catch (error) {
    const isTimeout = timeout.aborted && !signal.aborted
    return {
      status: null,
      response: null,
      error: isTimeout ? `No response within ${timeoutMs / 1_000} seconds.` : describeFailure(error),
    }
  }
}

const withAbort = <T>(work: Promise<T>, signal: AbortSignal): Promise<T> =>
  new Promise((resolve, reject) => {
    const abort = () => reject(signal.reason)
    if (signal.aborted) abort()
    signal.addEventListener('abort', abort, { once: true })
    work.then(resolve, reject).finally(() => signal.removeEventListener('abort', abort))
  })

interface Received {
  status: number
  body: Buffer
}

function post(
  url: URL,
  { headers, body }: WebhookRequest,
  addresses: readonly string[],
  signal: AbortSignal,
): Promise<Received> {
  return new Promise((resolve, reject) => {
    const send = url.protocol === 'https:' ? https.request : http.request
    const request = send(url, {
      method: 'POST',
      headers: { ...headers, 'content-length': Buffer.byteLength(body) },
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
    request.on('upgrade', ({ statusCode = 0 }, socket) => {
      socket.destroy()
      resolve({ status: statusCode, body: Buffer.alloc(0) })
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
    resolve({ status: response.statusCode ?? 0, body })
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

/**
 * PostgreSQL rejects U+0000 in text, and control, bidirectional and invisible characters make a page show
 * something else than what was sent. Emoji need U+200D and U+FE0F.
 */
const UNPRINTABLE =
  /(?!\n|\t|\u200d|\ufe0f)[\p{Cc}\p{Zl}\p{Zp}\p{Default_Ignorable_Code_Point}\ufff9-\ufffb]/gu

const printable = (body: Buffer): string =>
  body.toString('utf8').replace(UNPRINTABLE, '\u{fffd}').slice(0, LOGGED_CHARS_MAX).toWellFormed()

const messages: Record<string, string> = {
  ECONNREFUSED: 'The connection was refused.',
  ECONNRESET: 'The connection was reset.',
  EPIPE: 'The connection was reset.',
  ETIMEDOUT: 'The connection timed out.',
  EHOSTUNREACH: 'The host cannot be reached.',
  ENETUNREACH: 'The host cannot be reached.',
  HPE_HEADER_OVERFLOW: 'The headers of the response are too large.',
}

function describeFailure(error: unknown): string {
  if (error instanceof TargetError) return error.message
  const { code = '', message = '' } = error as NodeJS.ErrnoException
  if (messages[code]) return messages[code]
  if (code.startsWith('HPE_')) return 'The response is not valid HTTP.'
  if (/CERT|TLS|SSL|ALTNAME|EPROTO|VERIFY|INVALID_CA|INVALID_PURPOSE|PATH_LENGTH/.test(code))
    return `TLS failed: ${code}.`
  return code ? `The request failed: ${code}.` : `The request failed: ${message.slice(0, 200)}.`
}
