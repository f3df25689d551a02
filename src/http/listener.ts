// The HTTP listener below Fastify: bounds on what a connection may do, and answers in the usual form to bytes that
// never become a request.
import { randomBytes } from 'node:crypto'
import type * as Http from 'node:http'
import type { Socket } from 'node:net'
import type { Logger } from 'pino'
import { faults } from '../contract/faults.ts'
import { Fault, invalid } from '../domain/fault.ts'
import { bodyOf } from './errors.ts'

// Imported, all its parts would be looked at, among them those by which Node loads its client for `fetch`: 25 ms of a start.
const http = process.getBuiltinModule('node:http')

const HEADER_BYTES_MAX = 16 * 1024
const HEADERS_TIMEOUT_MS = 10_000
const REQUEST_TIMEOUT_MS = 15_000
const TIMEOUT_CHECK_MS = 1_000
/** Longer than the idle time of common proxies, so that it is they who close first. */
const KEEP_ALIVE_MS = 75_000
/** Whoever neither sends nor reads for that long in the middle of something is gone. */
const SILENT_MAX_MS = 30_000
/** Without a bound, a client that sends and never reads would fill the memory with answers. */
const UNANSWERED_MAX = 32

type Exchange = [request: Http.IncomingMessage, response: Http.ServerResponse]

/** What a connection has asked for and not been answered: the first is being worked on, the others wait. */
const UNANSWERED = Symbol('unanswered')
const LATEST = Symbol('latest request')
const REFUSED = Symbol('closed once the whole requests are answered')
type Connection = Socket & { [UNANSWERED]?: Exchange[]; [LATEST]?: Http.IncomingMessage; [REFUSED]?: true }

export interface ListenerOptions {
  /** Answers from memory, and says so, or leaves the request to `handle`. */
  recall: ((...exchange: Exchange) => boolean) | undefined
  /** Takes a request over and says so, or leaves it to `handle`, to which it may also hand it on later. */
  takeOver: (...exchange: [...Exchange, handOn: Http.RequestListener]) => boolean
  log: Logger
}

export function createListener(
  handle: Http.RequestListener,
  { recall, takeOver, log }: ListenerOptions,
): Http.Server {
  const listener = http.createServer({
    // A request without a body is not made into a stream first.
    optimizeEmptyRequests: true,
    maxHeaderSize: HEADER_BYTES_MAX,
    headersTimeout: HEADERS_TIMEOUT_MS,
    requestTimeout: REQUEST_TIMEOUT_MS,
    connectionsCheckingInterval: TIMEOUT_CHECK_MS,
    keepAliveTimeout: KEEP_ALIVE_MS,
    // Refused by the server, with a body that says so.
    requireHostHeader: false,
    // Two Authorization headers become one that is no key, instead of the first one winning.
    joinDuplicateHeaders: true,
  })

  listener.timeout = SILENT_MAX_MS

  function take(request: Http.IncomingMessage, response: Http.ServerResponse): void {
    const connection = request.socket as Connection
    connection[LATEST] = request
    connection[UNANSWERED] ??= []
    const unanswered = connection[UNANSWERED]
    // Only where it is written at once: nobody may be overtaken, and what is not read has to wait its turn.
    const isFree = unanswered.length === 0 && response.socket !== null && connection.writableLength === 0
    if (isFree && recall?.(request, response)) return
    unanswered.push([request, response])
    if (unanswered.length === 1) answer(connection)
    else if (unanswered.length > UNANSWERED_MAX) {
      log.warn({ from: connection.remoteAddress }, 'too many requests on one connection')
      unanswered.length = 0
      connection.destroy()
    }
  }

  /** One at a time: an answer that nobody reads holds up those after it, instead of all being made and kept. */
  function answer(connection: Connection): void {
    const unanswered = connection[UNANSWERED] ?? []
    const [first] = unanswered
    if (!connection.writable) unanswered.length = 0
    else if (first && !(connection[REFUSED] && !first[0].complete)) {
      first[1].once('close', () => {
        unanswered.shift()
        answer(connection)
      })
      // The framework would wait for the end of a body that has a type, and this one has ended before it began.
      if (first[0].readableEnded) delete first[0].headers['content-type']
      if (!takeOver(...first, handle)) handle(...first)
    } else if (connection[REFUSED]) connection.destroySoon()
  }

  listener.on('request', take)
  // An expectation that Node does not know is ignored, instead of being answered in Node's own way.
  listener.on('checkExpectation', take)
  listener.on('connect', (_request, socket) => refuseNext(socket as Connection, new Fault('not_found')))
  listener.on('clientError', (error: Error & { code?: string }, socket) => {
    // One on which nothing ever came is closed without a word: if a request has arrived just now, nobody may take this for
    // its answer.
    if (error.code === 'ECONNRESET' || !socket.writable || (socket as Socket).bytesRead === 0) {
      socket.destroy()
      return
    }
    log.info({ code: error.code, from: (socket as Socket).remoteAddress }, 'not a request')
    refuseNext(socket as Connection, explain(error.code))
  })
  return listener
}

/** What came whole before it is answered first, and nothing after it. */
function refuseNext(connection: Connection, fault: Fault): void {
  const { [UNANSWERED]: unanswered = [], [LATEST]: latest } = connection
  const inTheMiddle = latest !== undefined && !latest.complete
  if (unanswered.length > (inTheMiddle ? 1 : 0)) connection[REFUSED] = true
  // In the middle of a request that has its answer already, another one would be taken for the next one's.
  else if (inTheMiddle && (unanswered[0]?.[1].headersSent ?? true)) connection.destroySoon()
  else refuse(connection, fault)
}

function explain(code: string | undefined): Fault {
  if (code === 'HPE_HEADER_OVERFLOW') return invalid('/headers', 'must not be larger than 16 KiB')
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return invalid('', 'the request did not arrive whole in time')
  return invalid('', 'this is not a well-formed HTTP request')
}

function refuse(socket: Socket, fault: Fault): void {
  const { status } = faults[fault.code]
  const body = JSON.stringify(bodyOf(fault))
  const head = [
    `HTTP/1.1 ${status} ${http.STATUS_CODES[status]}`,
    'Content-Type: application/json; charset=utf-8',
    `Content-Length: ${Buffer.byteLength(body)}`,
    'Access-Control-Allow-Origin: *',
    `X-Request-Id: ${randomBytes(9).toString('base64url')}`,
    'Connection: close',
  ]
  socket.end(`${head.join('\r\n')}\r\n\r\n${body}`, () => socket.destroy())
}
