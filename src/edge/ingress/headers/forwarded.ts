// The heads that the edge sends on: those of requests to local servers, and of responses to visitors.
import type { IncomingMessage } from 'node:http'
import type { ResponseHead } from '../../../tunnel-protocol/http/response-head.ts'
import type { RequestHead } from '../../local-server/request.ts'
import { endToEnd, headBytes, isProxyHeader } from './end-to-end.ts'
import type { HostRewrite } from './host-rewrite.ts'

type ReplacedHeaders = Readonly<Record<string, string | undefined>>

/** A request with a body is proxied as a request even if it asks for an upgrade: the body is part of it. */
export const mayUpgrade = (request: IncomingMessage) =>
  request.headers.upgrade?.toLowerCase() !== 'h2c' && !hasBody(request)

export const hasBody = ({ headers }: IncomingMessage) =>
  headers['transfer-encoding'] !== undefined || Number(headers['content-length'] ?? 0) !== 0

/** `replaced` has headers that replace those of the client, by lower-case name; undefined removes them. */
export function requestHead(request: IncomingMessage, replaced: ReplacedHeaders): RequestHead {
  const { method = '', url: target = '', headers } = request
  const isWhole = headers['transfer-encoding'] === undefined
  const body = !hasBody(request) ? 'none' : isWhole ? 'identity' : 'chunked'
  const forwarded = requestHeaders(request, replaced)
  // Never copied: the local server could parse an unusual spelling differently.
  if (body === 'chunked') forwarded.push('Transfer-Encoding', 'chunked')
  return { method, target, headers: forwarded, body, isUpgrade: false }
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

/** Of the status line. */
export const firstLineLength = ({ status, reason }: ResponseHead) =>
  `HTTP/1.1 ${status} `.length + reason.length
