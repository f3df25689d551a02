// Conditional and range requests (RFC 9110, 13 and 14).
import type { IncomingHttpHeaders } from 'node:http'

interface Version {
  readonly etag: string
  readonly modifiedAt: Date
  readonly bytes: number
}

/** HTTP dates have no milliseconds. */
const toSeconds = (ms: number) => Math.floor(ms / 1000)

/** Whether the client has this version already: 304. */
export function isNotModified(headers: IncomingHttpHeaders, { etag, modifiedAt }: Version): boolean {
  const { 'if-none-match': tags, 'if-modified-since': date } = headers
  if (tags !== undefined)
    return tags.split(',').some((tag) => tag.trim() === '*' || tag.trim().replace(/^W\//, '') === etag)
  return date !== undefined && toSeconds(modifiedAt.getTime()) <= toSeconds(Date.parse(date))
}

interface ByteRange {
  readonly start: number
  /** Inclusive. */
  readonly end: number
}

/** Undefined for the whole file, also for several ranges. Null if the range is outside the file. */
export function requestedRange(
  { range, 'if-range': validator }: IncomingHttpHeaders,
  { etag, modifiedAt, bytes }: Version,
): ByteRange | undefined | null {
  const [, first = '', last = ''] = /^bytes=(\d{0,15})-(\d{0,15})$/.exec(range ?? '') ?? []
  if (first === '' && last === '') return undefined
  const isSame =
    validator === undefined ||
    validator === etag ||
    toSeconds(Date.parse(String(validator))) === toSeconds(modifiedAt.getTime())
  if (!isSame) return undefined
  if (first === '')
    return Number(last) > 0 && bytes > 0 ? { start: Math.max(0, bytes - Number(last)), end: bytes - 1 } : null
  if (last !== '' && Number(last) < Number(first)) return undefined
  const end = last === '' ? bytes - 1 : Math.min(Number(last), bytes - 1)
  return Number(first) < bytes ? { start: Number(first), end } : null
}
