// Opens a connection to the edge: an HTTP request that is upgraded to a WebSocket.
import { randomBytes } from 'node:crypto'
import { request as httpRequest, type IncomingMessage } from 'node:http'
import type { Socket } from 'node:net'
import type { FindProxy } from '../lib/net/proxy/settings.ts'
import { connectThrough, ProxyError } from '../lib/net/proxy/tunnel.ts'
import { messageLine } from '../lib/net/untrusted-text.ts'
import { CONNECT_PATH, SUBPROTOCOL, TUNNEL_HEADER, type TunnelRequest } from '../tunnel-protocol/protocol.ts'
import { acceptKey, WebSocketConnection } from '../tunnel-protocol/websocket.ts'

const CONNECT_TIMEOUT_MS = 10_000
/** Longer than an edge needs to claim the names of all its clients after a restart. */
const RESPONSE_TIMEOUT_MS = 30_000
const BODY_BYTES_MAX = 64 * 1024
const ERROR_CODE = /^[a-z_]{1,40}$/

/**
 * The edge, or a proxy, rejected or closed the tunnel. Final for a tunnel that was never open; for one that
 * was, the code decides (`isFinal` in run.ts).
 */
export class TunnelRejected extends Error {
  override name = 'TunnelRejected'
  readonly code: string

  constructor(code: string, message: string) {
    super(message)
    this.code = code
  }
}

export interface ConnectOptions {
  /** Base URL of the edge. */
  readonly edge: string
  readonly key: string
  readonly request: TunnelRequest
  /** The tunnel was open before. */
  readonly isReconnect: boolean
  readonly signal: AbortSignal
  /** The proxy of connections to the edge. */
  readonly findProxy: FindProxy | undefined
}

/** Rejects with TunnelRejected, or with another error, after which the connection is always retried. */
export async function connect(options: ConnectOptions): Promise<WebSocketConnection> {
  const { edge, key, request, signal } = options
  const url = new URL(edge + CONNECT_PATH)
  const proxied = await openProxied(options, url)
  const send = url.protocol === 'https:' && !proxied ? (await import('node:https')).request : httpRequest
  const nonce = randomBytes(16).toString('base64')
  const upgrade = send(url, {
    ...(proxied ? { protocol: 'http:', createConnection: () => proxied } : { agent: false }),
    headers: {
      connection: 'Upgrade',
      upgrade: 'websocket',
      'sec-websocket-version': '13',
      'sec-websocket-key': nonce,
      'sec-websocket-protocol': SUBPROTOCOL,
      authorization: `Bearer ${key}`,
      [TUNNEL_HEADER]: toAscii(JSON.stringify(request)),
    },
  })
  const { promise, resolve, reject } = Promise.withResolvers<WebSocketConnection>()
  upgrade.on('upgrade', (response, socket, head) => {
    if (isAccepted(response, nonce)) resolve(new WebSocketConnection(socket, { role: 'client', head }))
    else {
      socket.destroy()
      reject(notAnEdge(edge, response))
    }
  })
  upgrade.on('response', (response) => {
    readBody(response).then(
      (body) => reject(toError(options, response, body)),
      (error) => reject(unreachable(edge, error)),
    )
  })
  upgrade.on('error', (error) => reject(unreachable(edge, error)))
  const abort = () => upgrade.destroy(new Error('canceled'))
  const failAfter = (ms: number, what: string) =>
    setTimeout(() => upgrade.destroy(new Error(`${what} within ${ms / 1000} seconds`)), ms)
  let timer = failAfter(CONNECT_TIMEOUT_MS, 'no connection')
  upgrade.once('finish', () => {
    clearTimeout(timer)
    timer = failAfter(RESPONSE_TIMEOUT_MS, 'no response')
  })
  upgrade.setNoDelay(true)
  signal.addEventListener('abort', abort)
  if (signal.aborted) abort()
  upgrade.end()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    signal.removeEventListener('abort', abort)
    // Closes the connection if the response never arrived or was not read to its end. Does nothing after an
    // upgrade: the request no longer owns the socket.
    upgrade.destroy()
  }
}

/** A connection through a proxy; undefined if there is none. */
async function openProxied(
  { edge, findProxy, signal }: ConnectOptions,
  url: URL,
): Promise<Socket | undefined> {
  const proxy = findProxy?.(url)
  if (!proxy) return undefined
  return connectThrough(proxy, url, signal).catch((error) => {
    const { message } = unreachable(edge, error)
    throw error instanceof ProxyError && error.isFinal
      ? new TunnelRejected('proxy_rejected', message)
      : new Error(message)
  })
}

const unreachable = (edge: string, { message, code }: NodeJS.ErrnoException) =>
  new Error(`The edge at ${edge} cannot be reached: ${messageLine(message || `${code}`)}.`)

const isAccepted = ({ headers }: IncomingMessage, nonce: string) =>
  headers.upgrade?.toLowerCase() === 'websocket' &&
  headers['sec-websocket-accept'] === acceptKey(nonce) &&
  headers['sec-websocket-protocol'] === SUBPROTOCOL

/** Headers are ASCII; JSON can escape everything else. */
const toAscii = (json: string) =>
  json.replace(/[\u007f-\uffff]/g, (char) => `\\u${char.charCodeAt(0).toString(16).padStart(4, '0')}`)

interface ErrorBody {
  readonly error: string
  readonly message: string
}

function toError(
  { edge, isReconnect }: ConnectOptions,
  response: IncomingMessage,
  body: ErrorBody | undefined,
): Error {
  const { statusCode = 0 } = response
  // The edge closed this tunnel earlier; its message is a complete sentence.
  if (body?.error === 'closed') return new TunnelRejected(body.error, body.message)
  const isEdge = body !== undefined && statusCode !== 404
  const message = isEdge
    ? `The edge at ${edge} ${isReconnect ? 'closed' : 'rejected'} the tunnel: ${lowerFirst(body.message)}`
    : `The edge at ${edge} is not available (HTTP ${statusCode}).`
  // Retried: a proxy in front of the edge responds with 5xx while the edge restarts.
  if (statusCode >= 500) return new Error(message)
  return isEdge ? new TunnelRejected(body.error, message) : notAnEdge(edge, response)
}

function notAnEdge(edge: string, { statusCode, headers: { location } }: IncomingMessage): TunnelRejected {
  const redirect = location === undefined ? '' : `, redirect to ${messageLine(location)}`
  return new TunnelRejected(
    'no_edge',
    `${edge} is not an Adit edge (HTTP ${statusCode}${redirect}). Check --edge.`,
  )
}

/** Lets a sentence follow a colon; an acronym keeps its case. */
const lowerFirst = (sentence: string) =>
  sentence.replace(/^[A-Z](?=[a-z ])/, (letter) => letter.toLowerCase())

/** The body is limited and made printable, because the URL may belong to any server. */
async function readBody(response: IncomingMessage): Promise<ErrorBody | undefined> {
  const chunks: Buffer[] = []
  let length = 0
  for await (const chunk of response as AsyncIterable<Buffer>) {
    length += chunk.length
    if (length > BODY_BYTES_MAX) return undefined
    chunks.push(chunk)
  }
  try {
    const { error, message } = JSON.parse(String(Buffer.concat(chunks)))
    if (typeof error !== 'string' || typeof message !== 'string') return undefined
    if (!ERROR_CODE.test(error)) return undefined
    return { error, message: messageLine(message) }
  } catch {
    return undefined
  }
}
