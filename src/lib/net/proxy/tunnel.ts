// Connections through an HTTP proxy, by CONNECT.
import type { ClientRequest, IncomingMessage } from 'node:http'
import { isIP, type Socket } from 'node:net'
import { messageLine } from '../untrusted-text.ts'
import { defaultPort, type ForwardProxy, withoutBrackets } from './settings.ts'

/** Covers the connection to the proxy, its response, and the TLS handshake with the server. */
const CONNECT_TIMEOUT_MS = 10_000

/** The message completes "… cannot be reached: …". It never contains the credentials of the proxy. */
export class ProxyError extends Error {
  override name = 'ProxyError'
  /** The proxy rejects the user and password: a retry would not help, and may lock the account. */
  readonly isFinal: boolean

  constructor({ name }: ForwardProxy, problem: string, isFinal = false) {
    super(`the proxy ${name} ${problem}`)
    this.isFinal = isFinal
  }
}

/** Connects to the server of the URL, with TLS for https. */
export async function connectThrough(
  proxy: ForwardProxy,
  url: URL,
  signal?: AbortSignal | null,
): Promise<Socket> {
  const timeout = AbortSignal.timeout(CONNECT_TIMEOUT_MS)
  const abort = signal ? AbortSignal.any([signal, timeout]) : timeout
  try {
    const socket = await openTunnel(proxy, url, abort)
    return url.protocol === 'https:' ? await startTls(socket, url, abort) : socket
  } catch (error) {
    if (signal?.aborted || !timeout.aborted) throw error
    throw new ProxyError(proxy, `did not connect within ${CONNECT_TIMEOUT_MS / 1000} seconds`)
  }
}

/** Sends a request to the proxy itself. Node limits the size of the response head. */
export async function requestProxy(
  { hostname: host, port, isTls, authorization }: ForwardProxy,
  { headers, ...options }: { method: string; path: string; headers: Record<string, string> },
): Promise<ClientRequest> {
  // Loaded on demand: most commands use no proxy.
  const { request: send } = isTls ? await import('node:https') : await import('node:http')
  const authorized =
    authorization === undefined ? headers : { ...headers, 'proxy-authorization': authorization }
  // Without a servername, Node verifies the certificate of the proxy against the Host header.
  return send({ host, port, servername: toServername(host), agent: false, headers: authorized, ...options })
}

/** SNI takes no IP addresses. */
const toServername = (host: string) => (isIP(host) ? '' : host)

async function openTunnel(proxy: ForwardProxy, url: URL, signal: AbortSignal): Promise<Socket> {
  const authority = `${url.hostname}:${url.port || defaultPort(url)}`
  const request = await requestProxy(proxy, {
    method: 'CONNECT',
    path: authority,
    headers: { host: authority },
  })
  return settle(request, signal, (resolve, reject) => {
    request.on('connect', (response, socket: Socket, head) => {
      const { statusCode = 0 } = response
      // The socket may fail before TLS or a request listens; they then find it closed.
      socket.on('error', () => undefined)
      if (statusCode >= 200 && statusCode < 300) {
        if (head.length > 0) socket.unshift(head)
        resolve(socket)
      } else {
        socket.destroy()
        reject(rejectionError(proxy, response))
      }
    })
    request.on('error', (error) => reject(signal.aborted ? error : connectionError(proxy, error)))
    request.end()
  })
}

async function startTls(socket: Socket, url: URL, signal: AbortSignal): Promise<Socket> {
  const { connect } = await import('node:tls')
  const host = withoutBrackets(url.hostname)
  const secure = connect({ socket, host, servername: toServername(host), ALPNProtocols: ['http/1.1'] })
  return settle(secure, signal, (resolve, reject) => {
    secure.once('secureConnect', () => resolve(secure))
    secure.on('error', reject)
  })
}

/** Destroys the stream if the signal is aborted first. */
async function settle<T>(
  stream: ClientRequest | Socket,
  signal: AbortSignal,
  start: (resolve: (value: T) => void, reject: (error: Error) => void) => void,
): Promise<T> {
  const abort = () => stream.destroy(signal.reason)
  signal.addEventListener('abort', abort)
  try {
    return await new Promise<T>((resolve, reject) => {
      start(resolve, reject)
      if (signal.aborted) abort()
    })
  } finally {
    signal.removeEventListener('abort', abort)
  }
}

/** The error for a proxy that does not respond, or not with HTTP. */
export function connectionError(
  proxy: ForwardProxy,
  { code = '', message }: NodeJS.ErrnoException,
): ProxyError {
  const reason = messageLine(message || code)
  return new ProxyError(
    proxy,
    code.startsWith('HPE_') ? `sent no valid HTTP response: ${reason}` : `cannot be reached: ${reason}`,
  )
}

/** The error for a proxy that responds with an error status. */
export function rejectionError(
  proxy: ForwardProxy,
  { statusCode = 0, statusMessage = '' }: IncomingMessage,
): ProxyError {
  // tinyproxy responds with 401 to a wrong password.
  if (statusCode === 407 || statusCode === 401)
    return new ProxyError(
      proxy,
      `rejected the connection with ${statusCode}: set a valid user and password in its URL, as ` +
        'http://user:password@host:port',
      true,
    )
  return new ProxyError(
    proxy,
    `rejected the connection: ${messageLine(`${statusCode} ${statusMessage}`.trim())}`,
  )
}
