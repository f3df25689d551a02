// One client connection of the server: tries the response cache first, and rejects in the usual form.
import { randomBytes } from 'node:crypto'
import type { IncomingMessage, RequestListener, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { faults } from '../../../contract/faults.ts'
import { HttpConnection } from '../../../lib/http/connection.ts'
import { normalizeAddress } from '../../../lib/net/ip-address.ts'
import type { Fault } from '../../domain/fault.ts'
import type { ResponseCache, VerifiedHeader } from '../response-cache/cache.ts'
import { errorBody } from './errors.ts'

/** Twice the largest accepted body: a client that exceeds a limit can still read the response. */
const DISCARD_BYTES_MAX = 8 * 1024 * 1024
const OPTIONS = {
  discardBytesMax: DISCARD_BYTES_MAX,
  timeoutMs: 5_000,
  /** Longer than the timeout of any SQL statement. */
  earlierRequestsTimeoutMs: 10_000,
}

export interface RequestHandlers {
  /** Tried first. */
  responseCache: ResponseCache
  handle: RequestListener
  log: Logger
}

export class ApiConnection extends HttpConnection<Fault> {
  readonly #handlers: RequestHandlers
  readonly #verified: VerifiedHeader = { authorization: undefined, hash: undefined }

  constructor(socket: Socket, handlers: RequestHandlers) {
    super(socket, OPTIONS)
    this.#handlers = handlers
  }

  protected override handle(request: IncomingMessage, response: ServerResponse): boolean {
    const { responseCache, handle } = this.#handlers
    // Fastify would wait for the end of a body with a content type, but an empty body has ended already.
    if (request.readableEnded) delete request.headers['content-type']
    if (responseCache.tryRespond(request, response, this.#verified, handle))
      // On a connection that stays open, there is nothing to wait for.
      return response.writableEnded && response.socket !== null && this.socket.writableLength === 0
    handle(request, response)
    return false
  }

  protected override sendRejection(fault: Fault): void {
    this.socket.write(rawErrorResponse(fault))
    this.closeGracefully()
  }

  protected override onTooManyRequests(): void {
    const from = normalizeAddress(this.socket.remoteAddress ?? '')
    this.#handlers.log.warn({ from }, 'too many pipelined requests; connection closed')
  }
}

/** Whether closing is cheaper than reading the rest of the body to keep the connection alive. */
export const shouldCloseAfterResponse = ({ complete, headers }: IncomingMessage): boolean =>
  !complete &&
  (headers['transfer-encoding'] !== undefined || Number(headers['content-length']) > DISCARD_BYTES_MAX)

function rawErrorResponse(fault: Fault): string {
  const { status } = faults[fault.code]
  const { STATUS_CODES } = process.getBuiltinModule('node:http')
  const body = JSON.stringify(errorBody(fault))
  const head = [
    `HTTP/1.1 ${status} ${STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Access-Control-Allow-Origin: *',
    `X-Request-Id: ${randomBytes(9).toString('base64url')}`,
    'Connection: close',
  ]
  return `${head.join('\r\n')}\r\n\r\n${body}`
}
