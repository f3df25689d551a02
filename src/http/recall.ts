// What was answered once and is still true is answered again before the framework is asked: most requests are the same few
// reads over and over. Anything out of the ordinary in a request is left to the framework, whose answers these are.
import type { IncomingMessage, ServerResponse } from 'node:http'
import proxyAddress from '@fastify/proxy-addr'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import type { Directory } from '../directory/directory.ts'
import { createMemory } from '../directory/memory.ts'
import { answeredLog } from './answered-log.ts'
import { bearerOf } from './authenticate.ts'
import { requestIds } from './request-id.ts'

const BYTES_MAX = 32 * 1024 * 1024
/** About what an answer takes besides its body. */
const BYTES_EACH = 1_000
const REQUEST_ID = 'x-request-id'
const ASCII = /^[\x20-\x7e]*$/

/** Whether something is still as it was. */
export type Watch = () => boolean

export interface Recall {
  /** Keeps what is being answered to any key of a workspace, for as long as it is true. */
  remember(workspaceId: string, reply: FastifyReply, body: string, isStillTrue: Watch): void
  /** Answers and says so, or leaves the request as it is. */
  answer(request: IncomingMessage, response: ServerResponse): boolean
}

export interface RecallOptions {
  directory: Directory
  isStopping: () => boolean
  trustedProxies: readonly string[]
  log: Logger
}

interface Remembered {
  route: string | undefined
  /** Names and values in turn. */
  head: string[]
  requestIdAt: number
  body: string
  /** Written out faster where nothing has to be encoded. */
  encoding: 'latin1' | 'utf8'
  isStillTrue: Watch
}

export function createRecall({ directory, isStopping, trustedProxies, log }: RecallOptions): Recall {
  const answers = createMemory<Remembered>(BYTES_MAX, ({ body }) => body.length + BYTES_EACH)
  const originOf = originsBehind(trustedProxies)
  const requestIdOf = requestIds()
  const tell = answeredLog(log)

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
      if (request.method !== 'GET' || isStopping()) return
      const head = headOf(reply, body)
      answers.set(`${workspaceId} ${request.url}`, {
        route: request.routeOptions.url,
        head,
        requestIdAt: head.indexOf(REQUEST_ID) + 1,
        body,
        encoding: ASCII.test(body) ? 'latin1' : 'utf8',
        isStillTrue,
      })
    },

    answer(request, response) {
      const began = performance.now()
      const { url = '' } = request
      if (!url.startsWith('/api/') || !isPlain(request) || isStopping()) return false
      const origin = originOf(request)
      const secret = bearerOf(request)
      if (origin === undefined || secret === undefined) return false
      const key = directory.recallKey(secret)
      const known = key && find(url, key.workspaceId)
      if (!known) return false

      const requestId = requestIdOf(request)
      known.head[known.requestIdAt] = requestId
      response.writeHead(200, known.head)
      response.end(known.body, known.encoding)
      tell({
        requestId,
        method: 'GET',
        route: known.route,
        status: 200,
        ms: performance.now() - began,
        from: origin,
        by: key.keyId,
      })
      return true
    },
  }
}

function headOf(reply: FastifyReply, body: string): string[] {
  const headers = { ...reply.getHeaders(), 'content-length': Buffer.byteLength(body) }
  return Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
}

/** One that asks for the whole answer, and has nothing to say besides. */
const isPlain = ({ method, httpVersionMinor, headers }: IncomingMessage): boolean =>
  method === 'GET' &&
  httpVersionMinor === 1 &&
  headers.host?.includes(',') === false &&
  headers['if-none-match'] === undefined &&
  headers['content-length'] === undefined &&
  headers['transfer-encoding'] === undefined &&
  headers.expect === undefined

/** Where a request came from; undefined where the framework has more to say about it. */
function originsBehind(trustedProxies: readonly string[]) {
  if (trustedProxies.length === 0)
    return ({ headers, socket }: IncomingMessage) =>
      headers['x-forwarded-for'] === undefined ? socket.remoteAddress : undefined
  const isTrusted = proxyAddress.compile([...trustedProxies])
  return (request: IncomingMessage) => proxyAddress.all(request, isTrusted).at(-1)
}
