// Events of a response with text/event-stream, as the HTML standard parses them. Lines are kept as bytes
// until an event is complete: parts of strings would keep everything in memory that arrived with them.
import { LIMITS } from '../api.ts'
import { RecordedBody } from '../store/recorded-body.ts'

interface SseMessage {
  readonly data: string
  readonly event: string | undefined
  readonly id: string | undefined
  /** The size of the event with its field names. */
  readonly bytes: number
  readonly cut: boolean
}

const LF = 0x0a
const CR = 0x0d
const COLON = 0x3a
const SPACE = 0x20
const BYTE_ORDER_MARK = Buffer.from([0xef, 0xbb, 0xbf])
const LINE_FEED = Buffer.from([LF])
const FIELD_BYTES_MAX = 500

export class SseParser {
  readonly #onMessage: (message: SseMessage) => void
  /** The line that has not ended. */
  #line = new RecordedBody(LIMITS.messageBytes)
  #isFirstLine = true
  #endsWithCr = false
  #data = new RecordedBody(LIMITS.messageBytes)
  #event: string | undefined
  #id: string | undefined
  #bytes = 0
  #isCut = false

  constructor(onMessage: (message: SseMessage) => void) {
    this.#onMessage = onMessage
  }

  /** What is kept of an event that has not arrived completely. */
  get keptBytes(): number {
    return this.#line.allocated + this.#data.allocated
  }

  push(received: Buffer): void {
    let at = 0
    let lf = -1
    let cr = -1
    while (at < received.length) {
      // The LF of a CRLF, which may be split.
      if (this.#endsWithCr && received[at] === LF) at += 1
      this.#endsWithCr = false
      if (lf < at) lf = indexOf(received, LF, at)
      if (cr < at) cr = indexOf(received, CR, at)
      const end = Math.min(lf, cr)
      const part = received.subarray(at, end)
      this.#bytes += part.length
      if (end === received.length) return void this.#line.add(part)
      this.#endsWithCr = end === cr
      this.#endLine(part)
      at = end + 1
    }
  }

  /** Most lines arrive whole, and are not copied. */
  #endLine(part: Buffer): void {
    this.#bytes += 1
    let line = part.subarray(0, LIMITS.messageBytes)
    let { length } = part
    if (this.#line.bytes > 0) {
      this.#line.add(part)
      line = this.#line.content
      length = this.#line.bytes
      this.#line = new RecordedBody(LIMITS.messageBytes)
    }
    if (length > line.length) this.#isCut = true
    if (this.#isFirstLine && line.indexOf(BYTE_ORDER_MARK) === 0) line = line.subarray(BYTE_ORDER_MARK.length)
    this.#isFirstLine = false
    if (line.length === 0) this.#dispatch()
    else this.#onLine(line)
  }

  #onLine(line: Buffer): void {
    const colon = indexOf(line, COLON, 0)
    const start = line[colon + 1] === SPACE ? colon + 2 : colon + 1
    const value = line.subarray(start)
    const name = line.toString('latin1', 0, Math.min(colon, FIELD_BYTES_MAX))
    if (name === 'data') this.#addData(value)
    else if (name === 'event') this.#event = decode(value.subarray(0, FIELD_BYTES_MAX))
    else if (name === 'id') this.#id = decode(value.subarray(0, FIELD_BYTES_MAX))
  }

  #addData(value: Buffer): void {
    this.#data.add(value)
    this.#data.add(LINE_FEED)
  }

  /** An event without data, such as a comment, is none. */
  #dispatch(): void {
    const { bytes, content } = this.#data
    if (bytes > 0)
      this.#onMessage({
        // Without the LF behind the last line.
        data: decode(content.subarray(0, bytes - 1)),
        event: this.#event,
        id: this.#id,
        bytes: this.#bytes,
        cut: this.#isCut || bytes - 1 > content.length,
      })
    if (bytes > 0) this.#data = new RecordedBody(LIMITS.messageBytes)
    this.#event = undefined
    this.#bytes = 0
    this.#isCut = false
  }
}

/** The length if there is none. */
function indexOf(bytes: Buffer, byte: number, start: number): number {
  const found = bytes.indexOf(byte, start)
  return found < 0 ? bytes.length : found
}

/** `stream`: a character at the end may be cut. */
const decode = (bytes: Buffer) =>
  new TextDecoder('utf-8', { ignoreBOM: true }).decode(bytes, { stream: true })
