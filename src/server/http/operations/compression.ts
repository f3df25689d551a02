// Gzip for JSON responses of GET requests. Operations that accept a cookie or return a secret are excluded:
// another site could learn the secret from the lengths of compressed responses (BREACH).
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Access, Operation } from '../../../contract/operation.ts'
import { createLruCache } from '../../../lib/collections/lru-cache.ts'

/** A smaller body fits in one or two packets without compression. */
const CHARS_MIN = 1_024
const CACHE_BYTES_MAX = 8 * 1024 * 1024
const ENTRY_BYTES = 200
const HEADERS_MAX = 100

const withoutCookie: ReadonlySet<Access> = new Set(['anyone', 'key', 'edge'])

export const isCompressible = ({ method, access, response }: Operation): boolean =>
  method === 'GET' && withoutCookie.has(access) && !response.secret

export const isLongEnough = (body: string): boolean => body.length > CHARS_MIN

const compress = promisify(gzip)
/** Compressed bodies by ETag, which is a hash of the body. */
const bodies = createLruCache<Buffer>(CACHE_BYTES_MAX, ({ length }) => length + ENTRY_BYTES)

export async function compressOnce(etag: string, body: string): Promise<Buffer> {
  const known = bodies.get(etag)
  if (known) return known
  const compressed = await compress(body)
  bodies.set(etag, compressed)
  return compressed
}

/** Weights of codings by header. Most clients send one of a few headers. */
const knownHeaders = new Map<string, ReadonlyMap<string, number>>()

/** Whether `Accept-Encoding` allows the coding, by RFC 9110. */
export function acceptsEncoding(header: string | undefined, coding: 'br' | 'gzip'): boolean {
  if (header === undefined) return false
  let weights = knownHeaders.get(header)
  if (!weights) {
    if (knownHeaders.size >= HEADERS_MAX) knownHeaders.clear()
    weights = parseWeights(header)
    knownHeaders.set(header, weights)
  }
  return (weights.get(coding) ?? weights.get('*') ?? 0) > 0
}

const parseWeights = (header: string): ReadonlyMap<string, number> =>
  new Map(
    header
      .toLowerCase()
      .split(',')
      .map((part): [string, number] => {
        const [coding = '', weight = 'q=1'] = part.split(';').map((text) => text.trim())
        return [coding, Number(weight.replace(/^q=/, ''))]
      }),
  )
