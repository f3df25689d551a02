// Parses the bytes of one connection to the local server, in the order in which they passed: one request and
// response after the other, or a WebSocket.
import type { ResponseHead } from '../../tunnel-protocol/http/response-head.ts'
import { ResponseParser } from '../../tunnel-protocol/http/response-parser.ts'
import {
  findHeader,
  type Origin,
  RecordedExchange,
  type RecordedTunnel,
  type RequestHead,
  UNKNOWN_REQUEST,
} from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { RecordedBody } from '../store/recorded-body.ts'
import { TooManyMessages } from './message-budget.ts'
import { RequestParser } from './request-parser.ts'
import { SseParser } from './sse-messages.ts'
import { UpgradedConnection } from './upgraded-connection.ts'

/** Bytes of a visitor that wait for the response to the request for an upgrade. */
const WAITING_BYTES_MAX = 64 * 1024
/** What to parse at once: of messages less, because a few bytes of a message may be much to do. */
const PART_BYTES = 8 * 1024
const MESSAGE_PART_BYTES = 256

export class StreamParser {
  readonly #store: ExchangeStore
  readonly #tunnel: RecordedTunnel
  readonly #origin: Origin | undefined
  #request: RequestParser | undefined
  #response: ResponseParser | undefined
  #exchange: RecordedExchange | undefined
  #events: SseParser | undefined
  #upgraded: UpgradedConnection | undefined
  #asksForUpgrade = false
  #waiting = new RecordedBody(WAITING_BYTES_MAX)
  /** Counted by the store. */
  #headBytes = 0
  #now = 0
  #hasFailed = false

  constructor(store: ExchangeStore, tunnel: RecordedTunnel, origin?: Origin) {
    this.#store = store
    this.#tunnel = tunnel
    this.#origin = origin
  }

  /** The exchange of the latest request. */
  get exchange(): RecordedExchange | undefined {
    return this.#exchange
  }

  /** How many bytes of one direction to pass at once, so that parsing them takes little time. */
  get partBytes(): number {
    return this.#upgraded || this.#events ? MESSAGE_PART_BYTES : PART_BYTES
  }

  /** `now` is the time of `performance.now()` at which the bytes passed. */
  fromVisitor(received: Buffer, now: number): void {
    this.#guard(now, () => this.#readRequests(received))
  }

  fromServer(received: Buffer, now: number): void {
    this.#guard(now, () => {
      if (this.#upgraded) this.#upgraded.fromServer(received)
      else this.#response?.push(received)
    })
  }

  serverEnded(now: number): void {
    if (this.#upgraded || this.#hasFailed) return
    this.#now = now
    try {
      this.#response?.end()
    } catch {
      this.#finish('aborted', 'The local server closed the connection before the response was complete.')
    }
  }

  /** `problem`: why there is no complete response, if it is known. */
  closed(now: number, problem = 'The connection ended before the response was complete.'): void {
    this.#now = now
    this.#countHead(0)
    if (this.#upgraded && !this.#hasFailed) this.#finish('complete')
    else this.#finish('aborted', problem)
  }

  /** The rest of the connection is not recorded, which its latest exchange says, or one that is added. */
  fail(problem: string): void {
    this.#hasFailed = true
    if (!this.#upgraded) problem += ' Later requests of the same connection are not recorded.'
    this.#release()
    this.#request = undefined
    this.#countHead(0)
    // Who replays a request gets the reason.
    if (!this.#exchange && !this.#origin) this.#addExchange(UNKNOWN_REQUEST)
    this.#finish('unrecorded', problem)
    const exchange = this.#exchange
    if (!exchange || exchange.problem !== undefined) return
    exchange.problem = problem
    this.#store.changed(exchange)
  }

  #guard(now: number, parse: () => void): void {
    if (this.#hasFailed) return
    this.#now = now
    try {
      parse()
      this.#countHead(this.#request?.hasHead === false ? this.#request.allocated : 0)
    } catch (error) {
      const { message } = error as Error
      this.fail(error instanceof TooManyMessages ? message : `It could not be parsed: ${message}.`)
    }
    const exchange = this.#exchange
    if (!exchange) return
    if (exchange.state === 'pending') exchange.unfinishedBytes = this.#unfinishedBytes()
    this.#store.changed(exchange)
    if (exchange.isEvicted) this.#release()
  }

  /** Throws if the heads of all streams take too much memory. */
  #countHead(bytes: number): void {
    const added = bytes - this.#headBytes
    if (added === 0) return
    this.#headBytes = bytes
    if (!this.#store.countHeads(added) && added > 0) throw new Error('too many heads that are not complete')
  }

  #unfinishedBytes(): number {
    if (this.#upgraded) return this.#upgraded.keptBytes
    const heads = (this.#request?.allocated ?? 0) + (this.#response?.allocated ?? 0)
    return heads + (this.#events?.keptBytes ?? 0) + this.#waiting.allocated
  }

  #release(): void {
    this.#events = undefined
    this.#upgraded?.release()
  }

  #readRequests(received: Buffer): void {
    if (this.#upgraded) return void this.#upgraded.fromClient(received)
    let at = 0
    while (at < received.length) {
      if (this.#request?.isComplete && this.#exchange?.state === 'pending') {
        if (!this.#asksForUpgrade) throw new Error('a request before the response to the last one')
        return void this.#wait(received.subarray(at))
      }
      if (!this.#request || this.#request.isComplete) this.#request = this.#nextRequest()
      at = this.#request.push(received, at)
    }
  }

  #wait(bytes: Buffer): void {
    this.#waiting.add(bytes)
    if (this.#waiting.bytes > WAITING_BYTES_MAX)
      throw new Error('too much data before the response to an upgrade')
  }

  #takeWaiting(): Buffer {
    const { content } = this.#waiting
    this.#waiting = new RecordedBody(WAITING_BYTES_MAX)
    return content
  }

  #nextRequest(): RequestParser {
    return new RequestParser({
      onHead: (head, isUpgrade) => this.#onRequest(head, isUpgrade),
      onData: (data) => this.#exchange?.request.body.add(data),
      onComplete: (trailers) => {
        if (!this.#exchange) return
        this.#exchange.request.trailers = trailers
        this.#exchange.request.body.isComplete = true
      },
    })
  }

  #addExchange(head: RequestHead): RecordedExchange {
    const exchange = new RecordedExchange(this.#tunnel, head, this.#now, this.#origin)
    this.#exchange = exchange
    this.#store.add(exchange)
    return exchange
  }

  #onRequest(head: RequestHead, isUpgrade: boolean): void {
    const exchange = this.#addExchange(head)
    this.#events = undefined
    this.#asksForUpgrade = isUpgrade
    this.#response = new ResponseParser(head.method, isUpgrade, {
      onHead: (response) => this.#onResponse(exchange, response),
      onData: (data) => this.#onData(exchange, data),
      onComplete: (trailers, last) => {
        if (last) this.#onData(exchange, last)
        this.#onComplete(exchange, trailers)
      },
      onUpgrade: (response, rest) => this.#onUpgrade(exchange, response, rest),
    })
  }

  #onResponse(exchange: RecordedExchange, head: ResponseHead): void {
    const { status, reason, headers, httpVersion } = head
    exchange.firstByteMs = exchange.msSince(this.#now)
    const body = new RecordedBody()
    exchange.response = { status, reason, headers, httpVersion, body, trailers: [] }
    const type = findHeader(headers, 'content-type') ?? ''
    const isEvents = /^text\/event-stream\b/i.test(type)
    if (!isEvents || findHeader(headers, 'content-encoding') !== undefined) return
    exchange.kind = 'sse'
    this.#events = new SseParser(({ data, event, id, bytes, cut }) =>
      exchange.addMessage({
        ms: exchange.msSince(this.#now),
        from: 'server',
        type: 'sse',
        content: data,
        bytes,
        cut,
        ...(event !== undefined && { event }),
        ...(id !== undefined && { eventId: id }),
      }),
    )
  }

  #onData(exchange: RecordedExchange, data: Buffer): void {
    exchange.response?.body.add(data)
    this.#events?.push(data)
  }

  #onComplete(exchange: RecordedExchange, trailers: readonly string[]): void {
    if (exchange.response) {
      exchange.response.trailers = trailers
      exchange.response.body.isComplete = true
    }
    this.#finish('complete')
    this.#readRequests(this.#takeWaiting())
  }

  #onUpgrade(exchange: RecordedExchange, response: ResponseHead, rest: Buffer): void {
    this.#onResponse(exchange, response)
    if (exchange.response) exchange.response.body.isComplete = true
    this.#upgraded = new UpgradedConnection(exchange, () => this.#now)
    this.#upgraded.fromServer(rest)
    this.#upgraded.fromClient(this.#takeWaiting())
  }

  #finish(state: 'complete' | 'aborted' | 'unrecorded', problem?: string): void {
    const exchange = this.#exchange
    if (exchange?.state !== 'pending') return
    exchange.lastByteMs = exchange.msSince(this.#now)
    exchange.finish(state, problem)
    this.#store.changed(exchange)
  }
}
