// The heads that the edge sends on: those of requests to local servers, and of responses to visitors.
import type { IncomingMessage } from 'node:http'
import type { ResponseHead } from '../../../tunnel-protocol/http/response-head.ts'
import type { RequestHead } from '../../local-server/request.ts'
import { endToEnd, formatHeaders, headBytes, isProxyHeader } from './end-to-end.ts'
import type { HostRewrite } from './host-rewrite.ts'
import { trailerHeader } from './trailers.ts'

/** An informational response frames nothing, and its cookies would pass without `confineCookies`. */
const NOT_IN_INFORMATIONAL = new Set(['content-length', 'transfer-encoding', 'set-cookie', 'set-cookie2'])
const TE_TRAILERS = /(?:^|[,\s])trailers(?:$|[,;\s])/i
const VIA_HTTP_1_0 = /(?:^|,)\s*(?:http\/)?1\.0\s/i

type ReplacedHeaders = Readonly<Record<string, string | undefined>>

/** A request with a body is proxied as a request even if it asks for an upgrade: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/** The client waits with the body for 100 Continue. Other expectations are ignored. */
export const expectsContinue = (request: IncomingMessage) =>
  request.httpVersion === '1.1' &&
  request.headers.expect?.toLowerCase() === '100-continue' &&
  hasBody(request)

/** Clients of HTTP/1.0, which may be behind a proxy, would take such a response for the last. */
export const mayGetInformational = ({ httpVersion, headers }: IncomingMessage) =>
  httpVersion === '1.1' && !VIA_HTTP_1_0.test(headers.via ?? '')

/** `replaced` has headers that replace those of the client, by lower-case name; undefined removes them. */
export function requestHead(request: IncomingMessage, replaced: ReplacedHeaders): RequestHead {
  const { method = '', url: target = '', headers } = request
  const isWhole = headers['transfer-encoding'] === undefined
  const body = !hasBody(request) ? 'none' : isWhole ? 'identity' : 'chunked'
  const forwarded = requestHeaders(request, replaced)
  // Never copied: the local server could parse an unusual spelling differently.
  if (body === 'chunked') forwarded.push('Transfer-Encoding', 'chunked', ...trailerHeader(request.rawHeaders))
  if (expectsContinue(request)) forwarded.push('Expect', '100-continue')
  return { method, target, headers: forwarded, body, isUpgrade: false, takesTrailers: takesTrailers(request) }
}

function requestHeaders({ rawHeaders }: IncomingMessage, replaced: ReplacedHeaders): string[] {
  const forwarded = endToEnd(
    rawHeaders,
    (name) => name === 'transfer-encoding' || Object.hasOwn(replaced, name) || isProxyHeader(name),
  )
  for (const name in replaced) {
    const value = replaced[name]
    if (value !== undefined) forwarded.push(name, value)
  }
  return forwarded
}

export const requestHeadBytes = ({ method, target, headers }: RequestHead) =>
  headBytes(method.length + target.length + ' '.length + ' HTTP/1.1'.length, headers)

export function responseHeaders(
  { headers }: ResponseHead,
  rewrite: (headers: string[]) => string[],
  hostRewrite: HostRewrite | undefined,
): string[] {
  const rewritten = rewrite(endToEnd(headers, (name) => name === 'transfer-encoding'))
  return hostRewrite?.rewriteResponse(rewritten) ?? rewritten
}

/** The response to a visitor of HTTP/1.1 has chunks, with which trailers can be sent. */
const sendsChunks = (request: IncomingMessage, { status, framing }: ResponseHead) =>
  framing === 'chunked' &&
  request.httpVersion === '1.1' &&
  request.method !== 'HEAD' &&
  status !== 204 &&
  status !== 304

/** The header Trailer of a response, if there can be trailers. Node rejects it otherwise. */
export const responseTrailerHeader = (request: IncomingMessage, head: ResponseHead): string[] =>
  sendsChunks(request, head) ? trailerHeader(head.headers) : []

/** Some servers send trailers only to clients that take them. */
const takesTrailers = ({ httpVersion, headers }: IncomingMessage) =>
  httpVersion === '1.1' && TE_TRAILERS.test(String(headers.te))

export const informationalHeaders = ({ headers }: ResponseHead): string[] =>
  endToEnd(headers, (name) => NOT_IN_INFORMATIONAL.has(name))

export const formatHead = ({ status, reason }: ResponseHead, headers: readonly string[]): string =>
  `HTTP/1.1 ${status} ${reason}\r\n${formatHeaders(headers)}\r\n`

/** Of the status line. */
export const firstLineLength = ({ status, reason }: ResponseHead) =>
  `HTTP/1.1 ${status} `.length + reason.length
