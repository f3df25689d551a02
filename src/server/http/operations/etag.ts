// Entity tags, for conditional requests.
import { hash } from 'node:crypto'

export const createEtag = (body: string): string => `"${hash('sha1', body, 'base64url')}"`

/** Whether `If-None-Match` contains the tag, by weak comparison as RFC 9110 requires. */
export function etagMatches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === etag)
}
