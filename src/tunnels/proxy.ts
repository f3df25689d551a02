// Hands a request on and its answer back. Both ends of a tunnel do this: the edge, from visitors into the tunnel, and its
// other end, from the tunnel to a local server.
import { type IncomingMessage, type RequestOptions, request, type ServerResponse } from 'node:http'
import { type Duplex, pipeline } from 'node:stream'
import { connectionNames } from './header-limits.ts'
import { closeGracefully } from './responses.ts'

/** What concerns one connection and not the request. */
const HOP_BY_HOP = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'te',
  'trailer',
  'upgrade',
  'expect',
])
/** Nobody can have these left out by calling them hop-by-hop: what they frame would be taken for another request. */
const FRAMING = new Set(['content-length', 'transfer-encoding', 'host'])
const LISTENERS_MAX = 30
const ANSWER_WITHIN_MS = 120_000
/** Responses 1xx before the response to a request. */
const INFORMATIONAL_MAX = 32

export interface ProxyOptions {
  /** How the far side is reached. */
  readonly to: Pick<RequestOptions, 'agent' | 'host' | 'port'>
  /** Headers that take the place of those which came along, by their names in lower case. */
  readonly headers?: Readonly<Record<string, string>>
  /** Rewrites the headers of responses, names and values in turn. */
  rewriteResponse?(headers: string[]): string[]
  /** Called with the bytes of heads and bodies as they pass. */
  onBytesIn?(bytes: number): void
  onBytesOut?(bytes: number): void
  /** The far side has begun to answer. */
  onAnswered?(status: number): void
  /** The far side gave no answer; nothing was sent to the near one yet. */
  refuse(status: 502 | 504): void
}

/** Gives what ends it, before its time. */
export function proxyRequest(
  near: IncomingMessage,
  answer: ServerResponse,
  passage: ProxyOptions,
): () => void {
  const headers = headersFor(near, passage)
  const onward = startOnward(near, headers, passage)
  const patience = setTimeout(() => giveUp(504), ANSWER_WITHIN_MS)

  function giveUp(status: 502 | 504): void {
    clearTimeout(patience)
    onward.destroy()
    if (answer.writableEnded || answer.destroyed) return
    if (answer.headersSent) answer.destroy()
    else passage.refuse(status)
  }

  onward.on('response', (far) => {
    if (onward.destroyed) return
    clearTimeout(patience)
    // The request turned out malformed meanwhile, and has its response.
    if (answer.headersSent) return void onward.destroy()
    const { statusCode: status = 0, statusMessage: reason = '' } = far
    const kept = responseHeaders(far, passage)
    try {
      if (!isFinal(status)) throw new RangeError('no status of an answer')
      answer.writeHead(status, reason, kept)
    } catch {
      // Whoever stands behind the tunnel can send what they like.
      giveUp(502)
      return
    }
    passage.onAnswered?.(status)
    passage.onBytesOut?.(sizeOfHead(`HTTP/1.1 ${status} ${reason}`, kept))
    far.on('data', (chunk: Buffer) => passage.onBytesOut?.(chunk.length))
    // Ends both sides when either one does.
    pipeline(far, answer, () => {})
  })
  onward.on('error', () => giveUp(502))
  // Only with an answer to an upgrade that nobody asked for.
  onward.on('upgrade', (_far, socket) => {
    socket.destroy()
    giveUp(502)
  })
  answer.on('close', () => {
    clearTimeout(patience)
    onward.destroy()
    // Answered before all of it was read: the next request on the connection comes after the rest, which is nobody's.
    near.off('data', count)
    near.unpipe(onward)
    near.resume()
  })
  const count = (chunk: Buffer) => {
    passage.onBytesIn?.(chunk.length)
    // Something large takes as long as it takes; nobody answers before it is there.
    if (!answer.headersSent) patience.refresh()
  }
  near.on('data', count)
  // Before the body comes: a tunnel client makes another connection once it knows that this one is in use.
  if (hasBody(near)) onward.flushHeaders()
  near.pipe(onward)
  return () => giveUp(502)
}

/** A WebSocket, or whatever else begins as a request and goes on as a connection. */
export function proxyUpgrade(
  near: IncomingMessage,
  socket: Duplex,
  early: Buffer,
  passage: ProxyOptions,
): () => void {
  const headers = [
    ...headersFor(near, passage),
    'Connection',
    'Upgrade',
    'Upgrade',
    near.headers.upgrade ?? '',
  ]
  const onward = startOnward(near, headers, passage)
  const patience = setTimeout(() => giveUp(504), ANSWER_WITHIN_MS)
  let isAnswered = false

  function giveUp(status: 502 | 504): void {
    clearTimeout(patience)
    onward.destroy()
    if (isAnswered) socket.destroy()
    else if (!socket.destroyed) passage.refuse(status)
  }
  function sendHead(far: IncomingMessage, headers: string[]): void {
    clearTimeout(patience)
    isAnswered = true
    passage.onAnswered?.(far.statusCode as number)
    const head = `HTTP/1.1 ${far.statusCode} ${far.statusMessage}\r\n${linesOf(headers)}\r\n`
    socket.write(head, 'latin1')
    passage.onBytesOut?.(head.length)
  }

  socket.on('error', () => onward.destroy())
  socket.on('close', () => {
    clearTimeout(patience)
    onward.destroy()
  })
  onward.on('error', () => giveUp(502))
  // Refused, by an ordinary answer: after it neither connection is of any more use.
  onward.on('response', (far) => {
    if (onward.destroyed) return
    if (!isFinal(far.statusCode ?? 0)) {
      giveUp(502)
      return
    }
    far.once('end', () => onward.destroy())
    sendHead(far, [...responseHeaders(far, passage), 'Connection', 'close'])
    far.on('data', (chunk: Buffer) => passage.onBytesOut?.(chunk.length))
    far.on('error', () => socket.destroy())
    far.pipe(socket, { end: false })
    far.once('end', () => closeGracefully(socket))
  })
  onward.on('upgrade', (far, farSocket, farEarly) => {
    farSocket.on('error', () => {})
    if (onward.destroyed) return
    sendHead(far, rewritten(far.rawHeaders, passage))
    // Each of the two pipelines below has some of its own.
    for (const end of [socket, farSocket]) end.setMaxListeners(LISTENERS_MAX)
    for (const [bytes, to, count] of [
      [farEarly, socket, passage.onBytesOut],
      [early, farSocket, passage.onBytesIn],
    ] as const) {
      if (bytes.length === 0) continue
      to.write(bytes)
      count?.(bytes.length)
    }
    socket.on('data', (chunk: Buffer) => passage.onBytesIn?.(chunk.length))
    farSocket.on('data', (chunk: Buffer) => passage.onBytesOut?.(chunk.length))
    pipeline(socket, farSocket, () => {})
    pipeline(farSocket, socket, () => {})
  })
  onward.end()
  return () => giveUp(502)
}

const isFinal = (status: number) => status >= 200 && status <= 999

/** A request that has a body goes on as a request, whatever it would like to become: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

function startOnward(near: IncomingMessage, headers: string[], { to, onBytesIn }: ProxyOptions) {
  const { method = 'GET', url = '/' } = near
  onBytesIn?.(sizeOfHead(`${method} ${url} HTTP/1.1`, headers))
  const onward = request({ ...to, method, path: url, headers, setHost: false, setDefaultHeaders: false })
  let informational = 0
  onward.on('information', () => {
    informational += 1
    if (informational > INFORMATIONAL_MAX) onward.destroy(new Error('Too many informational responses.'))
  })
  return onward
}

function headersFor(near: IncomingMessage, { headers = {} }: ProxyOptions): string[] {
  const kept = endToEnd(near.rawHeaders, new Set(Object.keys(headers)))
  return [...kept, ...Object.entries(headers).flat()]
}

const responseHeaders = (far: IncomingMessage, passage: ProxyOptions) =>
  rewritten(endToEnd(far.rawHeaders, new Set(['transfer-encoding'])), passage)

const rewritten = (headers: string[], { rewriteResponse }: ProxyOptions) =>
  rewriteResponse?.(headers) ?? headers

/** Those headers that are for whoever the message is for, in the order and spelling in which they came. */
function endToEnd(raw: readonly string[], without: ReadonlySet<string>): string[] {
  const pairs = raw.flatMap((name, index) =>
    index % 2 === 0 ? [[name.toLowerCase(), name, raw[index + 1] as string] as const] : [],
  )
  const named = new Set(
    pairs.flatMap(([key, , value]) => (key === 'connection' ? connectionNames(value) : [])),
  )
  return pairs.flatMap(([key, name, value]) =>
    HOP_BY_HOP.has(key) || without.has(key) || (named.has(key) && !FRAMING.has(key)) ? [] : [name, value],
  )
}

const linesOf = (headers: readonly string[]) =>
  headers.reduce((text, part, index) => text + part + (index % 2 === 0 ? ': ' : '\r\n'), '')

const sizeOfHead = (first: string, headers: readonly string[]) =>
  first.length + 2 + linesOf(headers).length + 2
