// Parses a request as the edge sends it to the local server. The edge wrote the head, so this parser only has
// to understand it.
import { ChunkedDecoder } from '../../tunnel-protocol/http/chunked-decoder.ts'
import { LineBuffer } from '../../tunnel-protocol/http/line-buffer.ts'
import {
  HEAD_BYTES_MAX,
  hasUpgrade,
  parseHeaders,
  readFraming,
} from '../../tunnel-protocol/http/response-head.ts'
import { TOKEN_CHARACTER } from '../../tunnel-protocol/http/token.ts'
import type { RequestHead } from '../store/exchange.ts'

/** The edge adds headers to those of the visitor. */
export const REQUEST_HEAD_BYTES_MAX = HEAD_BYTES_MAX + 4 * 1024
const REQUEST_LINE = new RegExp(`^(${TOKEN_CHARACTER}{1,64}) (\\S+) HTTP/(1\\.[01])$`)

interface RequestHandler {
  onHead(head: RequestHead, isUpgrade: boolean): void
  onData(data: Buffer): void
  onComplete(trailers: readonly string[]): void
}

/** Parses one request. Throws if it is not one. */
export class RequestParser {
  readonly #handler: RequestHandler
  readonly #lines = new LineBuffer('\r\n\r\n')
  #hasHead = false
  #isComplete = false
  #dataLeft = 0
  #chunks: ChunkedDecoder | undefined

  constructor(handler: RequestHandler) {
    this.#handler = handler
  }

  get hasHead(): boolean {
    return this.#hasHead
  }

  get isComplete(): boolean {
    return this.#isComplete
  }

  /** Memory of what has not arrived completely. */
  get allocated(): number {
    return this.#lines.allocated + (this.#chunks?.allocated ?? 0)
  }

  /** Returns the position behind what belongs to the request. */
  push(received: Buffer, start: number): number {
    let at = start
    while (at < received.length && !this.#isComplete)
      at = this.#hasHead ? this.#readBody(received, at) : this.#readHead(received, at)
    return at
  }

  #readHead(received: Buffer, at: number): number {
    const found = this.#lines.add(received, at)
    if ((found?.text.length ?? this.#lines.bytes) > REQUEST_HEAD_BYTES_MAX)
      throw new Error('head that is too long')
    if (!found) return received.length
    const lineEnd = found.text.indexOf('\r\n')
    const line = lineEnd < 0 ? found.text : found.text.slice(0, lineEnd)
    const [, method, path, httpVersion] = REQUEST_LINE.exec(line) ?? []
    if (method === undefined || path === undefined || httpVersion === undefined)
      throw new Error('invalid request line')
    const headers = lineEnd < 0 ? [] : parseHeaders(found.text, lineEnd + 2)
    const framing = readFraming(headers)
    this.#hasHead = true
    this.#handler.onHead({ method, path, httpVersion, headers }, hasUpgrade(headers))
    if (framing === 'chunked') this.#chunks = new ChunkedDecoder()
    else if (framing === 'until close' || framing === 0) this.#complete([])
    else this.#dataLeft = framing
    return found.next
  }

  #readBody(received: Buffer, at: number): number {
    if (this.#chunks) {
      const end = this.#chunks.push(received, at, (data) => this.#handler.onData(data))
      if (this.#chunks.isComplete) this.#complete(this.#chunks.trailers())
      return end
    }
    const end = Math.min(received.length, at + this.#dataLeft)
    this.#dataLeft -= end - at
    this.#handler.onData(received.subarray(at, end))
    if (this.#dataLeft === 0) this.#complete([])
    return end
  }

  #complete(trailers: readonly string[]): void {
    this.#isComplete = true
    this.#handler.onComplete(trailers)
  }
}
