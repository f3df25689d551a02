// Entity tags, for conditional requests.
import { hash } from 'node:crypto'

export const createEtag = (body: string | Buffer): string => `"${hash('sha1', body, 'base64url')}"`

/** Whether `If-None-Match` contains the tag, by weak comparison as RFC 9110 requires. */
export function etagMatches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  const strong = (tag: string) => tag.trim().replace(/^W\//, '')
  return ifNoneMatch.split(',').some((tag) => tag.trim() === '*' || strong(tag) === strong(etag))
}
