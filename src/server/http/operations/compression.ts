// Gzip for JSON responses of GET requests. Operations that accept a cookie or return a secret are excluded:
// another site could learn the secret from the lengths of compressed responses (BREACH).
import { promisify } from 'node:util'
import { gzip } from 'node:zlib'
import type { Access, Operation } from '../../../contract/operation.ts'
import { createLruCache } from '../../../lib/lru-cache.ts'

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

/** Results by header, because most clients send one of a few headers. */
const knownHeaders = new Map<string, boolean>()

/** Whether `Accept-Encoding` allows gzip, by RFC 9110. */
export function acceptsGzip(header: string | undefined): boolean {
  if (header === undefined) return false
  const known = knownHeaders.get(header)
  if (known !== undefined) return known
  if (knownHeaders.size >= HEADERS_MAX) knownHeaders.clear()
  const accepts = parseAcceptsGzip(header)
  knownHeaders.set(header, accepts)
  return accepts
}

function parseAcceptsGzip(header: string): boolean {
  const weights = new Map(
    header
      .toLowerCase()
      .split(',')
      .map((part): [string, number] => {
        const [coding = '', weight = 'q=1'] = part.split(';').map((text) => text.trim())
        return [coding, Number(weight.replace(/^q=/, ''))]
      }),
  )
  return (weights.get('gzip') ?? weights.get('*') ?? 0) > 0
}
