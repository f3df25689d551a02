// Trailers of proxied messages, and the header that announces them.
import { HOP_BY_HOP, hyphenate, isProxyHeader } from './end-to-end.ts'

const TRAILERS_MAX = 1_000
/**
 * Fields that change how a message is parsed, routed or authorized are not forwarded behind its body. A
 * digest of the content is: it may be known only then.
 */
const NOT_IN_TRAILERS =
  /^(content-(?!digest$|md5$)|transfer-|host$|authorization$|cookie$|set-cookie|cache-control$|expires$|location$|vary$|age$|range$|if-|www-authenticate$|max-forwards$|pragma$|date$|retry-after$|x-http-method)/

function isForwarded(name: string): boolean {
  const key = hyphenate(name.toLowerCase())
  return !HOP_BY_HOP.has(key) && !isProxyHeader(key) && !NOT_IN_TRAILERS.test(key)
}

/** The trailers that may be forwarded; none if there are too many. */
export function forwardedTrailers(raw: readonly string[]): string[] {
  const trailers: string[] = []
  if (raw.length > 2 * TRAILERS_MAX) return trailers
  for (let index = 0; index < raw.length; index += 2) {
    const name = raw[index] as string
    if (isForwarded(name)) trailers.push(name, raw[index + 1] as string)
  }
  return trailers
}

/** The header Trailer with the names that may be forwarded; empty if there are none. */
export function trailerHeader(headers: readonly string[]): string[] {
  const names: string[] = []
  for (let index = 0; index < headers.length; index += 2) {
    const name = headers[index] as string
    if (name.length !== 'trailer'.length || name.toLowerCase() !== 'trailer') continue
    names.push(...(headers[index + 1] as string).split(/[,\s]+/).filter((text) => text && isForwarded(text)))
  }
  return names.length > 0 ? ['Trailer', names.join(', ')] : []
}

/** Pairs of names and values, as `addTrailers` expects them. */
export const headerPairs = (headers: readonly string[]) =>
  headers.flatMap((name, index): [string, string][] =>
    index % 2 === 0 ? [[name, headers[index + 1] as string]] : [],
  )
