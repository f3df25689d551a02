// What was answered once and is still true is answered again before the framework is asked: most reads are the same few over
// and over.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Directory } from '../../directory/directory.ts'
import { createLruCache } from '../../directory/lru-cache.ts'
import { bearerToken } from '../auth/authenticator.ts'
import { type Head, headOf, type Shortcut } from './fast-path.ts'

const BYTES_MAX = 32 * 1024 * 1024
/** A longer one would take the place of too many others. */
const BODY_BYTES_MAX = 256 * 1024
/** About what an answer takes besides its body, with the address that it is found by. */
const BYTES_EACH = 1_000
/** Any that is meant for this API is shorter; others could be made up without end. */
const URL_CHARS_MAX = 200
/** A short text is written faster along with the head, a long one without encoding it each time. */
const ENCODED_FROM = 8 * 1024
const ASCII = /^[\x20-\x7e]*$/

/** Whether something is still as it was. */
export type Watch = () => boolean

export interface Recall {
  /** Keeps what is being answered to any key of a workspace, for as long as it is true. */
  remember(workspaceId: string, reply: FastifyReply, body: string, isStillTrue: Watch): void
  /** Answers and says so, or leaves the request as it is. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

interface Remembered {
  head: Head
  body: string | Buffer
  bytes: number
  encoding: 'latin1' | 'utf8'
  isStillTrue: Watch
}

export function createRecall(directory: Directory, shortcut: Shortcut): Recall {
  const answers = createLruCache<Remembered>(BYTES_MAX, ({ bytes }) => bytes + BYTES_EACH)

  function find(url: string, workspaceId: string): Remembered | undefined {
    const name = `${workspaceId} ${url}`
    const found = answers.get(name)
    if (found === undefined || found.isStillTrue()) return found
    answers.delete(name)
    return undefined
  }

  return {
    remember(workspaceId, reply, body, isStillTrue) {
      const { request } = reply
      if (request.method !== 'GET' || request.url.length > URL_CHARS_MAX) return
      const bytes = Buffer.byteLength(body)
      if (bytes > BODY_BYTES_MAX) return
      answers.set(`${workspaceId} ${request.url}`, {
        head: headOf(reply),
        body: bytes < ENCODED_FROM ? body : Buffer.from(body),
        bytes,
        encoding: ASCII.test(body) ? 'latin1' : 'utf8',
        isStillTrue,
      })
    },

    answer(request, response) {
      const began = performance.now()
      const { method, url = '', headers } = request
      if (method !== 'GET' || !url.startsWith('/api/') || headers['content-length'] !== undefined)
        return false
      const from = shortcut.originOf(request)
      const secret = bearerToken(request)
      if (from === undefined || secret === undefined) return false
      const key = directory.cachedKey(secret)
      const known = key && find(url, key.workspaceId)
      if (!known) return false
      const { head, body, bytes, encoding } = known
      shortcut.answer(request, response, { head, body, bytes, encoding, began, from, by: key.keyId })
      return true
    },
  }
}
