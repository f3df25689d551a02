// What names a request, in its answer and in the log.
import { randomBytes } from 'node:crypto'
import type { IncomingHttpHeaders } from 'node:http'

const REQUEST_ID = /^[\w.:-]{1,64}$/

/** A caller's own id is kept if it is harmless in a log; otherwise one is made. */
export function requestIds(): (request: { headers: IncomingHttpHeaders }) => string {
  const boot = randomBytes(6).toString('base64url')
  let count = 0
  return ({ headers }) => {
    const given = headers['x-request-id']
    if (typeof given === 'string' && REQUEST_ID.test(given)) return given
    count += 1
    return `${boot}-${count.toString(36)}`
  }
}
