// Entity tags: a reader that already holds the answer is told so instead of being sent it again.
import { hash } from 'node:crypto'

export const etagOf = (body: string): string => `"${hash('sha1', body, 'base64url')}"`

/** Whether an `If-None-Match` names the tag; weakly, as the header's definition asks. */
export function etagMatches(ifNoneMatch: string | undefined, etag: string): boolean {
  if (ifNoneMatch === undefined) return false
  return ifNoneMatch
    .split(',')
    .map((tag) => tag.trim().replace(/^W\//, ''))
    .some((tag) => tag === '*' || tag === etag)
}
