// Sends one call of the client: timeout for each attempt, and retries with backoff.
import { ResponseTooLarge, readText } from '../lib/net/response-text.ts'
import { errorMessage } from '../lib/startup-error.ts'
import { parseExact } from './exact-json.ts'
import { AditError, type Fault, responseFault } from './faults.ts'
import { buildRequest } from './request.ts'

export interface CallOptions {
  /** Aborts the call, including the delay between attempts. */
  signal?: AbortSignal
}

export interface ClientOptions {
  /** Base URL of the server, e.g. `https://adit.example.com`. */
  baseUrl: string
  apiKey: string
  /** Timeout of one attempt; by default 10,000, and 30,000 to revoke a key or close a tunnel. */
  timeoutMs?: number
  /** Maximum number of retries; 3 by default. */
  retries?: number
  /** Sends requests, instead of the global fetch. If it rejects with `isFinal: true`, there is no retry. */
  fetch?: (url: string, init: RequestInit) => Promise<Response>
}

interface RoutedOperation {
  readonly route: string
  readonly resultFields: readonly string[]
  readonly usesIdempotencyKey: boolean
}

/** A list of 100,000 keys fits; longer lists are read in pages. */
const RESPONSE_BYTES_MAX = 32 * 1024 * 1024
const TIMEOUT_MS = 10_000
/** Revoking a key and closing a tunnel wait up to 27 seconds for an edge that is gone. */
const DELETE_TIMEOUT_MS = 30_000
const BACKOFF_MIN_MS = 250
/** The maximum delay before a retry. A longer `Retry-After` is reported to the caller instead. */
const DELAY_MAX_MS = 30_000

export function createTransport(options: ClientOptions) {
  const { apiKey, retries = 3, fetch: send = fetch } = options
  const base = parseBaseUrl(options.baseUrl)
  // The message does not quote the key, because a malformed one may still contain the secret.
  if (!/^[\x21-\x7e]+$/.test(apiKey))
    throw new TypeError('Invalid apiKey (expected printable ASCII characters)')
  const root = base.href.replace(/\/$/, '')

  async function attempt(
    { path, ...init }: RequestInit & { path: string },
    resultFields: readonly string[],
    signal: AbortSignal | undefined,
  ): Promise<object> {
    const { timeoutMs = init.method === 'DELETE' ? DELETE_TIMEOUT_MS : TIMEOUT_MS } = options
    const timeout = AbortSignal.timeout(timeoutMs)
    let response: Response
    let text: string
    try {
      const anySignal = signal ? AbortSignal.any([signal, timeout]) : timeout
      response = await send(root + path, { ...init, signal: anySignal, redirect: 'manual' })
      text = await readText(response, RESPONSE_BYTES_MAX)
    } catch (cause) {
      throw new AditError(connectionFault(base.origin, cause, { signal, timeout, timeoutMs }), { cause })
    }
    const body = parseExact(text)
    if (response.ok && body && resultFields.every((field) => field in body)) return body
    throw new AditError(responseFault(response, body), { response })
  }

  return async (
    { route, resultFields, usesIdempotencyKey }: RoutedOperation,
    input: object | undefined,
    { signal }: CallOptions,
  ) => {
    const { method, path, body } = buildRequest(route, requireValidId(input))
    const headers: Record<string, string> = { authorization: `Bearer ${apiKey}` }
    if (body !== undefined) headers['content-type'] = 'application/json'
    // All attempts of the call have the same key.
    if (usesIdempotencyKey) headers['idempotency-key'] = crypto.randomUUID()
    const request = { path, method, headers, ...(body !== undefined && { body }) }
    for (let retry = 0; ; retry++) {
      try {
        return await attempt(request, resultFields, signal)
      } catch (error) {
        const isRepeatable = method === 'GET' || usesIdempotencyKey
        if (!(error instanceof AditError) || retry >= retries || !mayRetry(error, isRepeatable)) throw error
        await delay(retryDelayMs(retry, error.retryAfterS), signal, error)
      }
    }
  }
}

function parseBaseUrl(text: string): URL {
  const url = URL.parse(text)
  if (!url || !/^https?:$/.test(url.protocol) || url.username || url.password || url.search || url.hash)
    throw new TypeError('Invalid baseUrl (expected the URL of a server, such as https://adit.example.com)')
  return url
}

/**
 * Without a readable response, the call may have taken effect. A revocation is then not retried: the second
 * response could not tell a key that was just revoked from one that does not exist. Tunnels are the same.
 */
function mayRetry({ fault, status = 0, retryAfterS = 0, cause }: AditError, isRepeatable: boolean): boolean {
  if (fault === TOO_LARGE || lacksTls(cause) || (cause as { isFinal?: unknown } | undefined)?.isFinal)
    return false
  if (retryAfterS * 1000 > DELAY_MAX_MS) return false
  switch (fault.error) {
    case 'rate_limited':
    case 'unavailable':
      return true
    case 'unreachable':
    case 'timed_out':
      return isRepeatable
    // Redirects and 4xx of another server do not change; the base URL is wrong.
    case 'unreadable':
      return isRepeatable && (status >= 500 || (status >= 200 && status < 300))
    default:
      return false
  }
}

/** With jitter, so that clients do not retry simultaneously. `Retry-After` is the minimum. */
function retryDelayMs(retry: number, retryAfterS = 0): number {
  const jitter = Math.random() / 4
  const backoffMs = Math.min(BACKOFF_MIN_MS * 2 ** retry, DELAY_MAX_MS) * (1 - jitter)
  return Math.max(backoffMs, Math.min(retryAfterS * 1000 * (1 + jitter), DELAY_MAX_MS))
}

interface AttemptContext {
  signal: AbortSignal | undefined
  timeout: AbortSignal
  timeoutMs: number
}

const ABORTED: Fault = { error: 'aborted', message: 'The call was aborted.' }
const TOO_LARGE: Fault = {
  error: 'unreadable',
  message: 'The response is larger than 32 MiB. Read long lists in pages (`limit`), or check the server URL.',
}

function connectionFault(
  origin: string,
  cause: unknown,
  { signal, timeout, timeoutMs }: AttemptContext,
): Fault {
  if (signal?.aborted) return ABORTED
  if (timeout.aborted)
    return { error: 'timed_out', message: `${origin} did not respond within ${timeoutMs / 1000} s.` }
  if (cause instanceof ResponseTooLarge) return TOO_LARGE
  if (lacksTls(cause))
    return { error: 'unreachable', message: `${origin} does not speak TLS. Use http:// instead.` }
  const reason = describeReason(origin, errorMessage(rootCause(cause)))
  return { error: 'unreachable', message: `${origin} cannot be reached: ${reason}.` }
}

/** `fetch` refuses ports that are reserved for other protocols, such as mail, and only says "bad port". */
const describeReason = (origin: string, message: string): string =>
  message === 'bad port'
    ? `port ${new URL(origin).port} is reserved for another protocol, so no HTTP request is sent to it`
    : message.replace(/\.$/, '')

/** `fetch` wraps the actual error. */
function rootCause(error: unknown): { code?: string } {
  const { cause = error } = (error ?? {}) as { cause?: unknown }
  return cause ?? {}
}

/** The server responds to a TLS handshake with plain HTTP. */
const lacksTls = (error: unknown): boolean =>
  ['ERR_SSL_WRONG_VERSION_NUMBER', 'ERR_SSL_PACKET_LENGTH_TOO_LONG'].includes(rootCause(error).code ?? '')

/** Rejects ids that would change the path of the request, or that cannot be encoded. */
function requireValidId(input: object | undefined): object | undefined {
  const { id } = (input ?? {}) as { id?: unknown }
  if (id === '' || id === '.' || id === '..') throw new AditError({ error: 'not_found' })
  if (typeof id === 'string' && !id.isWellFormed())
    throw new AditError({
      error: 'invalid_request',
      details: [{ path: '/params/id', message: 'must be well-formed text' }],
    })
  return input
}

/** Rejects when the signal is aborted, with the error of the last attempt as the cause. */
function delay(ms: number, signal: AbortSignal | undefined, cause: AditError): Promise<void> {
  return new Promise((resolve, reject) => {
    const onAbort = () => {
      clearTimeout(timer)
      reject(new AditError(ABORTED, { cause }))
    }
    const timer = setTimeout(() => {
      signal?.removeEventListener('abort', onAbort)
      resolve()
    }, ms)
    if (signal?.aborted) onAbort()
    signal?.addEventListener('abort', onAbort, { once: true })
  })
}
