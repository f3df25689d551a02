// fetch through the proxy that the environment configures. The tunnel client also runs on Node 20, whose own
// fetch does not support proxies.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { Readable } from 'node:stream'
import type { ReadableStream } from 'node:stream/web'
import type { FindProxy, ForwardProxy } from './settings.ts'
import { connectionError, connectThrough, rejectionError, requestProxy } from './tunnel.ts'

/** The part of fetch that commands use. */
type Fetch = (url: string, init?: RequestInit) => Promise<Response>

export const createFetch =
  (findProxy: FindProxy): Fetch =>
  async (url, init = {}) => {
    const proxy = findProxy(new URL(url))
    if (!proxy) return fetch(url, init)
    const response = await fetchThrough(proxy, new URL(url), init)
    if (init.redirect !== 'error' || response.status < 300 || response.status >= 400) return response
    await response.body?.cancel()
    throw new TypeError('unexpected redirect')
  }

/** Opens a connection for each request. Does not follow redirects. */
async function fetchThrough(
  proxy: ForwardProxy,
  url: URL,
  { signal, ...init }: RequestInit,
): Promise<Response> {
  // Encodes the body as fetch does.
  const encoded = new Request(url, init)
  const body = Buffer.from(await encoded.arrayBuffer())
  const head = {
    method: encoded.method,
    headers: {
      ...Object.fromEntries(encoded.headers),
      host: url.host,
      ...(init.body && { 'content-length': String(body.length) }),
    },
  }
  if (url.protocol === 'http:') {
    const request = await requestProxy(proxy, { ...head, path: url.href })
    const response = await send(request, body, signal).catch((error) => {
      throw signal?.aborted ? error : connectionError(proxy, error)
    })
    if (isFromProxy(response)) {
      response.destroy()
      throw rejectionError(proxy, response)
    }
    return toResponse(response)
  }
  // Loaded first, so that the connection is used as soon as it is open.
  const { request } = await import('node:http')
  const socket = await connectThrough(proxy, url, signal)
  const options = { ...head, path: url.pathname + url.search, createConnection: () => socket }
  return toResponse(await send(request(options), body, signal))
}

/** Adit sends errors as JSON, and never sends 407. */
const isFromProxy = ({ statusCode = 0, headers }: IncomingMessage) =>
  statusCode === 407 ||
  ([401, 403, 502, 503, 504].includes(statusCode) && !/json/.test(headers['content-type'] ?? ''))

/** The signal also aborts the body of the response, as with fetch. */
function send(request: ClientRequest, body: Buffer, signal: AbortSignal | null | undefined) {
  return new Promise<IncomingMessage>((resolve, reject) => {
    const abort = () => request.destroy(signal?.reason)
    signal?.addEventListener('abort', abort)
    request.once('close', () => signal?.removeEventListener('abort', abort))
    request.on('error', reject)
    request.on('response', resolve)
    if (signal?.aborted) abort()
    else request.end(body)
  })
}

/** `new Response` throws if one of these statuses has a body. */
const NULL_BODY_STATUSES = [204, 205, 304]

function toResponse(message: IncomingMessage): Response {
  const { statusCode: status = 0, statusMessage: statusText = '', rawHeaders } = message
  const headers = new Headers()
  for (let index = 0; index < rawHeaders.length; index += 2)
    headers.append(rawHeaders[index] as string, rawHeaders[index + 1] as string)
  const init = { status, statusText, headers }
  if (!NULL_BODY_STATUSES.includes(status))
    return new Response(Readable.toWeb(message) as ReadableStream, init)
  message.resume()
  return new Response(null, init)
}
