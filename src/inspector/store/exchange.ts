// What is recorded of an exchange: a request and its response.
import { type ExchangeSummary, LIMITS, type Message, UNKNOWN_METHOD } from '../api.ts'
import { RecordedBody } from './recorded-body.ts'

/** The tunnel of an exchange. Name and URL are known once it is open. */
export interface RecordedTunnel {
  name: string
  url: string
  readonly target: string
}

export interface RecordedPart {
  readonly httpVersion: string
  /** Alternating names and values in latin1, in their order and spelling. */
  readonly headers: readonly string[]
  readonly body: RecordedBody
  trailers: readonly string[]
}

interface RecordedResponsePart extends RecordedPart {
  readonly status: number
  readonly reason: string
}

/** How an exchange came about, if a visitor did not cause it. */
export interface Origin {
  readonly replayOf: string
  readonly edited: boolean
}

export interface RequestHead {
  readonly method: string
  readonly path: string
  readonly httpVersion: string
  readonly headers: readonly string[]
}

export const UNKNOWN_REQUEST: RequestHead = {
  method: UNKNOWN_METHOD,
  path: '',
  httpVersion: '1.1',
  headers: [],
}

/** Binary content is formatted when it is read. */
export type RecordedMessage = Omit<Message, 'text'> & { readonly content: string | Buffer }

/** What objects and strings of an exchange take, besides what is counted. */
const OVERHEAD_BYTES = 2_048
const MESSAGE_OVERHEAD_BYTES = 256
/** A byte is about five characters when it is shown, which bounds what one response of the API has. */
const HEX_FACTOR = 5

export class RecordedExchange {
  id = ''
  kind: ExchangeSummary['kind'] = 'http'
  state: ExchangeSummary['state'] = 'pending'
  problem: string | undefined
  response: RecordedResponsePart | undefined
  firstByteMs: number | undefined
  lastByteMs: number | undefined
  /** Bytes of WebSocket messages. */
  clientMessageBytes = 0
  serverMessageBytes = 0
  messageCount = 0
  /** What the recorder keeps of heads, trailers and messages that have not arrived completely. */
  unfinishedBytes = 0
  /** Nothing more is kept, because it was evicted. */
  isEvicted = false
  readonly startedAt = new Date()
  readonly startedMs: number
  readonly tunnel: RecordedTunnel
  readonly method: string
  readonly path: string
  readonly request: RecordedPart
  readonly origin: Origin | undefined
  readonly messages: RecordedMessage[] = []
  #messageBytes = 0

  /** `now` is the time of `performance.now()` at which the request began. */
  constructor(tunnel: RecordedTunnel, head: RequestHead, now: number, origin?: Origin) {
    this.tunnel = tunnel
    this.method = head.method
    this.path = head.path
    this.request = { ...head, body: new RecordedBody(), trailers: [] }
    this.startedMs = now
    this.origin = origin
  }

  /** An estimate of the memory that it takes. */
  get bytes(): number {
    const { request, response } = this
    const parts = partBytes(request) + (response ? partBytes(response) : 0)
    return OVERHEAD_BYTES + this.path.length + parts + this.#messageBytes + this.unfinishedBytes
  }

  get requestBytes(): number {
    return this.request.body.bytes + this.clientMessageBytes
  }

  get responseBytes(): number {
    return (this.response?.body.bytes ?? 0) + this.serverMessageBytes
  }

  msSince(now: number): number {
    return Math.max(0, now - this.startedMs)
  }

  addMessage(message: Omit<RecordedMessage, 'number'>): void {
    this.messageCount += 1
    if (this.isEvicted) return
    this.messages.push({ ...message, number: this.messageCount })
    this.#messageBytes += messageBytes(message)
    while (this.messages.length > LIMITS.messages || this.#messageBytes > LIMITS.messagesBytes) {
      const dropped = this.messages.shift()
      if (dropped) this.#messageBytes -= messageBytes(dropped)
    }
  }

  /** Nothing follows. */
  finish(state: 'complete' | 'aborted' | 'unrecorded', problem?: string): void {
    if (this.state !== 'pending') return
    this.state = state
    this.problem = problem
    this.unfinishedBytes = 0
    this.request.body.trim()
    this.response?.body.trim()
  }

  evict(): void {
    this.isEvicted = true
    this.request.body.drop()
    this.response?.body.drop()
    this.messages.length = 0
    this.#messageBytes = 0
  }
}

function messageBytes({ content, event = '', eventId = '' }: Omit<RecordedMessage, 'number'>): number {
  const contentBytes = typeof content === 'string' ? 2 * content.length : HEX_FACTOR * content.length
  return MESSAGE_OVERHEAD_BYTES + contentBytes + 2 * (event.length + eventId.length)
}

const partBytes = ({ headers, trailers, body }: RecordedPart) =>
  textBytes(headers) + textBytes(trailers) + body.allocated

const textBytes = (texts: readonly string[]) => texts.reduce((bytes, text) => bytes + text.length + 16, 0)

/** The value of the first header of the name, which is in lower case. */
export function findHeader(headers: readonly string[], name: string): string | undefined {
  for (let index = 0; index < headers.length; index += 2)
    if (headers[index]?.length === name.length && headers[index]?.toLowerCase() === name)
      return headers[index + 1]
  return undefined
}
