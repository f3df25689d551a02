// Headers of proxied messages, as alternating names and values, in their order and spelling.
import { connectionNames } from './limits.ts'

export const HOP_BY_HOP: ReadonlySet<string> = new Set([
  'connection',
  'keep-alive',
  'proxy-connection',
  'proxy-authenticate',
  'proxy-authorization',
  'te',
  'trailer',
  'upgrade',
  'expect',
])
/**
 * Never removed, even if Connection names them: without its framing a body would be parsed as another
 * request, and a request needs a Host.
 */
const NEVER_HOP_BY_HOP = new Set(['content-length', 'transfer-encoding', 'host'])
/**
 * Headers by which a proxy tells local servers the client's address, and the host, scheme and path of its
 * request. The edge is that proxy, so a client must not set them. `Proxy` becomes the variable HTTP_PROXY of
 * CGI programs.
 */
const PROXY_HEADERS = new Set([
  ...['forwarded', 'forwarded-for', 'x-forwarded', 'x-real-ip', 'client-ip', 'x-client-ip', 'true-client-ip'],
  ...['x-cluster-client-ip', 'proxy-client-ip', 'wl-proxy-client-ip', 'x-originating-ip', 'x-remote-ip'],
  ...['x-remote-addr', 'remote-addr', 'cf-connecting-ip', 'cf-connecting-ipv6', 'cf-pseudo-ipv4'],
  ...['fastly-client-ip', 'fly-client-ip', 'x-appengine-user-ip', 'x-azure-clientip', 'x-azure-socketip'],
  ...['x-envoy-external-address', 'x-scheme', 'x-url-scheme', 'front-end-https', 'x-host'],
  ...['x-http-host-override', 'x-rewrite-url', 'proxy'],
])
const PROXY_HEADER_PREFIXES = /^x-(?:forwarded|original)-/

/** Whether a header, in lower case, states what only a proxy knows. The edge sets some of them itself. */
export const isProxyHeader = (name: string): boolean =>
  PROXY_HEADERS.has(name) || PROXY_HEADER_PREFIXES.test(name)

/**
 * CGI and what follows it (WSGI, PHP) do not distinguish `_` from `-`, so a client could replace
 * X-Forwarded-For by X_Forwarded_For. Headers are recognized by the name with hyphens.
 */
export const hyphenate = (key: string) => (key.includes('_') ? key.replaceAll('_', '-') : key)

/** Returns the end-to-end headers that are not excluded. `isExcluded` gets names in lower case. */
export function endToEnd(raw: readonly string[], isExcluded: (name: string) => boolean): string[] {
  const hopByHop = namesInConnection(raw)
  const headers: string[] = []
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] as string
    const key = name.toLowerCase()
    const hyphenated = hyphenate(key)
    if (HOP_BY_HOP.has(hyphenated) || isExcluded(hyphenated)) continue
    if (NEVER_HOP_BY_HOP.has(hyphenated) ? key !== hyphenated : hopByHop?.has(key)) continue
    headers.push(name, raw[index + 1] as string)
  }
  return headers
}

/** The headers that Connection declares to be hop-by-hop; undefined if there are none. */
function namesInConnection(raw: readonly string[]): Set<string> | undefined {
  let names: Set<string> | undefined
  for (let index = 0; index < raw.length; index += 2) {
    if ((raw[index] as string).toLowerCase() !== 'connection') continue
    const value = raw[index + 1] as string
    if (value === 'keep-alive' || value === 'close') continue
    names ??= new Set()
    for (const name of connectionNames(value)) names.add(name)
  }
  return names
}

export function formatHeaders(headers: readonly string[]): string {
  let text = ''
  for (let index = 0; index < headers.length; index += 2)
    text += `${headers[index]}: ${headers[index + 1]}\r\n`
  return text
}

/** The size of a head in bytes: first line, headers and the empty line. */
export function headBytes(firstLineLength: number, headers: readonly string[]): number {
  return firstLineLength + '\r\n\r\n'.length + headersBytes(headers)
}

/** The size of headers or trailers in bytes: name, ": ", value and the line end of each. */
export function headersBytes(headers: readonly string[]): number {
  let bytes = 0
  for (let index = 0; index < headers.length; index += 1) bytes += (headers[index] as string).length + 2
  return bytes
}
