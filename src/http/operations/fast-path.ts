// What the two ways past the framework have in common: which requests may take them, and what their answers look like.
import type { IncomingMessage, ServerResponse } from 'node:http'
import type { FastifyReply } from 'fastify'
import type { Logger } from 'pino'
import { createAccessLog } from '../server/access-log.ts'
import type { ClientReader } from '../server/client-address.ts'
import { requestIds } from '../server/request-id.ts'

const REQUEST_ID = 'x-request-id'
const CONTENT_LENGTH = 'content-length'

export interface ShortcutOptions {
  isStopping: () => boolean
  client: ClientReader
  trustsProxies: boolean
  log: Logger
}

/** The head of an answer as the framework sent it. */
export interface Head {
  route: string | undefined
  /** Names and values in turn; what differs from answer to answer is put in its place each time. */
  fields: string[]
  requestIdAt: number
  contentLengthAt: number
}

export function headOf(reply: FastifyReply): Head {
  const headers = { ...reply.getHeaders(), [CONTENT_LENGTH]: '' }
  const fields = Object.entries(headers).flatMap(([name, value]) => [name, String(value)])
  return {
    route: reply.request.routeOptions.url,
    fields,
    requestIdAt: fields.indexOf(REQUEST_ID) + 1,
    contentLengthAt: fields.indexOf(CONTENT_LENGTH) + 1,
  }
}

export interface Shortcut {
  /** Where a request came from; undefined where it must not be answered here, because there is more to say about it. */
  originOf(request: IncomingMessage): string | undefined
  answer(request: IncomingMessage, response: ServerResponse, answer: ReadyAnswer): void
}

export interface ReadyAnswer {
  head: Head
  body: string | Buffer
  bytes: number
  /** Faster where nothing has to be encoded. */
  encoding: 'latin1' | 'utf8'
  /** When it was begun, by the monotonic clock. */
  began: number
  from: string
  by: string
}

export function createShortcut({ isStopping, client, trustsProxies, log }: ShortcutOptions): Shortcut {
  // A header that is ignored is warned about once, which the other path does.
  const addressOf = (request: IncomingMessage) =>
    trustsProxies || request.headers['x-forwarded-for'] === undefined ? client.address(request) : undefined
  const requestIdOf = requestIds()
  const tell = createAccessLog(log)
  return {
    originOf: (request) => (isPlain(request) && !isStopping() ? addressOf(request) : undefined),
    answer(request, response, { head, body, bytes, encoding, began, from, by }) {
      const requestId = requestIdOf(request)
      head.fields[head.requestIdAt] = requestId
      head.fields[head.contentLengthAt] = String(bytes)
      response.writeHead(200, head.fields)
      response.end(body, encoding)
      const { method = '' } = request
      const ms = performance.now() - began
      tell({ requestId, method, route: head.route, status: 200, ms, from, by })
    },
  }
}

/** Asks for the whole answer, once, of one host, and not for the end of the connection. */
const isPlain = ({ httpVersionMinor, headers }: IncomingMessage): boolean =>
  httpVersionMinor === 1 &&
  headers.host?.includes(',') === false &&
  (headers.connection === undefined || headers.connection.toLowerCase() === 'keep-alive') &&
  headers['if-none-match'] === undefined &&
  headers['transfer-encoding'] === undefined &&
  headers.expect === undefined
