// Parses the response to one request: informational responses, the head, and the body, which is passed on
// as it arrives, without copying.
import { ChunkedDecoder } from './chunked-decoder.ts'
import { LineBuffer } from './line-buffer.ts'
import {
  HEAD_BYTES_MAX,
  InvalidResponse,
  isUpgrade,
  parseHead,
  type ResponseHead,
  requireHttp,
} from './response-head.ts'

/** Enough to tell HTTP/1.1 from another protocol, and to see the end of the status line. */
const START_BYTES = 64
/** Limit of 1xx responses to one request. All of them together may have HEAD_BYTES_MAX. */
const INFORMATIONAL_MAX = 32
const NO_TRAILERS: readonly string[] = []

export interface ResponseHandler {
  /** Another response follows. The status is any of 1xx but 101. */
  onInformational?(head: ResponseHead): void
  onHead(head: ResponseHead): void
  onData(data: Buffer): void
  /** The response is complete. `last` is the rest of a body with a length. */
  onComplete(trailers: readonly string[], last?: Buffer): void
  /** The server switched protocols; `rest` is what it sent after the head. */
  onUpgrade(head: ResponseHead, rest: Buffer): void
}

/** Methods throw InvalidResponse. */
export class ResponseParser {
  readonly #method: string
  readonly #mayUpgrade: boolean
  readonly #handler: ResponseHandler
  readonly #lines = new LineBuffer('\r\n\r\n')
  #informational = 0
  #informationalBytes = 0
  #head: ResponseHead | undefined
  /** Bytes that are missing of a body with a length. */
  #dataLeft = 0
  #last: Buffer | undefined
  #chunks: ChunkedDecoder | undefined
  #isComplete = false
  #isStopped = false
  #hasExcess = false
  /**
   * The response must have no body, but its head announces one. Some servers send it nevertheless, as after
   * HEAD, and it would be parsed as the response to the next request.
   */
  #isBodyWithheld = false

  constructor(method: string, mayUpgrade: boolean, handler: ResponseHandler) {
    this.#method = method
    this.#mayUpgrade = mayUpgrade
    this.#handler = handler
  }

  /** The connection can be used for another request after the response. */
  get isReusable(): boolean {
    return this.#isComplete && this.#head?.isPersistent === true && !this.#hasExcess && !this.#isBodyWithheld
  }

  /** Memory of what has not arrived completely. */
  get allocated(): number {
    return this.#lines.allocated + (this.#chunks?.allocated ?? 0)
  }

  /** Ignores everything that follows. */
  stop(): void {
    this.#isStopped = true
  }

  push(received: Buffer): void {
    let at = 0
    while (at < received.length && !this.#isComplete && !this.#isStopped)
      at = this.#head ? this.#readBody(this.#head, received, at) : this.#readHead(received, at)
    if (at < received.length) this.#hasExcess = true
    if (this.#isComplete) this.#complete()
  }

  /** The connection ended. */
  end(): void {
    if (this.#isComplete || this.#isStopped) return
    if (this.#head?.framing !== 'until close') throw new InvalidResponse('incomplete response', 'closed')
    this.#isComplete = true
    this.#complete()
  }

  #readHead(received: Buffer, at: number): number {
    const found = this.#lines.add(received, at)
    if ((found?.text.length ?? this.#lines.bytes) > HEAD_BYTES_MAX)
      throw new InvalidResponse(`head of more than ${HEAD_BYTES_MAX} bytes`, 'head_too_large')
    if (!found) {
      // Servers of other protocols may wait for more than a request before they send more.
      requireHttp(this.#lines.start(START_BYTES))
      return received.length
    }
    const head = parseHead(found.text)
    if (head.status >= 200) this.#onHead(head)
    else if (isUpgrade(head) && this.#mayUpgrade) {
      this.#isStopped = true
      this.#handler.onUpgrade(head, received.subarray(found.next))
    } else this.#onInformational(head, found.text.length)
    return found.next
  }

  #onInformational(head: ResponseHead, bytes: number): void {
    const { status } = head
    this.#informational += 1
    this.#informationalBytes += bytes
    if (status < 100 || status === 101) throw new InvalidResponse(`unexpected status ${status}`)
    if (this.#informational > INFORMATIONAL_MAX || this.#informationalBytes > HEAD_BYTES_MAX)
      throw new InvalidResponse('too many informational responses')
    this.#handler.onInformational?.(head)
  }

  #onHead(head: ResponseHead): void {
    const { status, framing } = head
    this.#head = head
    this.#handler.onHead(head)
    const hasNoBody = this.#method === 'HEAD' || status === 204 || status === 304 || framing === 0
    if (hasNoBody) {
      this.#isComplete = true
      this.#isBodyWithheld = framing !== 0 && (this.#method === 'HEAD' || framing !== 'until close')
    } else if (framing === 'chunked') this.#chunks = new ChunkedDecoder()
    else if (framing !== 'until close') this.#dataLeft = framing
  }

  #readBody(head: ResponseHead, received: Buffer, at: number): number {
    if (this.#chunks) {
      const end = this.#chunks.push(received, at, (data) => this.#onData(data))
      this.#isComplete = this.#chunks.isComplete
      return end
    }
    if (head.framing === 'until close') {
      this.#onData(received.subarray(at))
      return received.length
    }
    const end = Math.min(received.length, at + this.#dataLeft)
    this.#dataLeft -= end - at
    this.#isComplete = this.#dataLeft === 0
    const data = at === 0 && end === received.length ? received : received.subarray(at, end)
    if (this.#isComplete) this.#last = data
    else this.#onData(data)
    return end
  }

  /**
   * A method, not a function in a field: V8 allocates functions assigned to properties as old objects, and
   * each would keep all objects of its request in memory until the next full garbage collection.
   */
  #onData(data: Buffer): void {
    if (!this.#isStopped) this.#handler.onData(data)
  }

  /** Calls the handler once. */
  #complete(): void {
    if (this.#isStopped) return
    this.#isStopped = true
    this.#handler.onComplete(this.#chunks?.trailers() ?? NO_TRAILERS, this.#last)
  }
}
