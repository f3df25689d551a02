// The heads that the edge sends on: those of requests to local servers, and of responses to visitors.
import type { IncomingMessage } from 'node:http'
import type { ResponseHead } from '../../../tunnel-protocol/http/response-head.ts'
import type { RequestHead } from '../../local-server/request.ts'
import { endToEnd, formatHeaders, headBytes, isProxyHeader } from './end-to-end.ts'
import type { HostRewrite } from './host-rewrite.ts'
import { trailerHeader } from './trailers.ts'

/** An informational response has no body to frame, and its cookies would bypass `confineCookies`. */
const NOT_IN_INFORMATIONAL = new Set(['content-length', 'transfer-encoding', 'set-cookie', 'set-cookie2'])
const TE_TRAILERS = /(?:^|[,\s])trailers(?:$|[,;\s])/i
const VIA_HTTP_1_0 = /(?:^|,)\s*(?:http\/)?1\.0\s/i

type ReplacedHeaders = Readonly<Record<string, string | undefined>>

/** A request with a body is proxied as a request even if it asks for an upgrade: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/** The client waits for 100 Continue before it sends the body. Other expectations are ignored. */
export const expectsContinue = (request: IncomingMessage) =>
  request.httpVersion === '1.1' &&
  request.headers.expect?.toLowerCase() === '100-continue' &&
  hasBody(request)

/** HTTP/1.0 clients, also behind a proxy, would take an informational response for the final one. */
export const mayGetInformational = ({ httpVersion, headers }: IncomingMessage) =>
  httpVersion === '1.1' && !VIA_HTTP_1_0.test(headers.via ?? '')

/** `replaced` has headers that replace those of the client, by lower-case name; undefined removes them. */
export function requestHead(request: IncomingMessage, replaced: ReplacedHeaders): RequestHead {
  const { method = '', url: target = '', headers } = request
  const isChunked = headers['transfer-encoding'] !== undefined
  const body = !hasBody(request) ? 'none' : isChunked ? 'chunked' : 'identity'
  const forwarded = requestHeaders(request, replaced)
  // Never copied: the local server could parse an unusual spelling differently.
  if (body === 'chunked') forwarded.push('Transfer-Encoding', 'chunked', ...trailerHeader(request.rawHeaders))
  if (expectsContinue(request)) forwarded.push('Expect', '100-continue')
  return {
    method,
    target,
    headers: forwarded,
    body,
    isUpgrade: false,
    acceptsTrailers: acceptsTrailers(request),
  }
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

/** Whether the response downstream is chunked: only then can it have trailers. */
const sendsChunks = (request: IncomingMessage, { status, framing }: ResponseHead) =>
  framing === 'chunked' &&
  request.httpVersion === '1.1' &&
  request.method !== 'HEAD' &&
  status !== 204 &&
  status !== 304

/** The Trailer header of a response, if it can have trailers. Node rejects the header otherwise. */
export const responseTrailerHeader = (request: IncomingMessage, head: ResponseHead): string[] =>
  sendsChunks(request, head) ? trailerHeader(head.headers) : []

/** Some servers send trailers only to clients that accept them. */
const acceptsTrailers = ({ httpVersion, headers }: IncomingMessage) =>
  httpVersion === '1.1' && TE_TRAILERS.test(String(headers.te))

export const informationalHeaders = ({ headers }: ResponseHead): string[] =>
  endToEnd(headers, (name) => NOT_IN_INFORMATIONAL.has(name))

export const formatHead = ({ status, reason }: ResponseHead, headers: readonly string[]): string =>
  `HTTP/1.1 ${status} ${reason}\r\n${formatHeaders(headers)}\r\n`

export const statusLineLength = ({ status, reason }: ResponseHead) =>
  `HTTP/1.1 ${status} `.length + reason.length
