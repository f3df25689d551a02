// Request ids, for the X-Request-Id header and the log.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const REQUEST_ID = /^[\w.:-]{1,64}$/

/** Uses the id that the client sent if it is safe to log, and creates one otherwise. */
export function requestIds(): (request: { headers: IncomingHttpHeaders }) => string {
  const prefix = randomBytes(6).toString('base64url')
  let count = 0
  return ({ headers }) => {
    const sent = headers['x-request-id']
    if (typeof sent === 'string' && REQUEST_ID.test(sent)) return sent
    count += 1
    return `${prefix}-${count.toString(36)}`
  }
}
