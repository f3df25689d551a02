// Events of a response with text/event-stream, as the HTML standard parses them.
import { LIMITS } from '../api.ts'

interface SseMessage {
  readonly data: string
  readonly event: string | undefined
  readonly id: string | undefined
  /** Of the event with its field names. */
  readonly bytes: number
  readonly cut: boolean
}

const LINE_END = /\r\n|\n|\r/
const FIELD_CHARS_MAX = 500

export class SseParser {
  readonly #decoder = new TextDecoder()
  readonly #onMessage: (message: SseMessage) => void
  /** The line that has not ended; its rest is skipped beyond the limit. */
  #line = ''
  #endsWithCr = false
  #data: string[] = []
  #dataChars = 0
  #event: string | undefined
  #id: string | undefined
  #bytes = 0
  #isCut = false

  constructor(onMessage: (message: SseMessage) => void) {
    this.#onMessage = onMessage
  }

  push(received: Buffer): void {
    let text = this.#decoder.decode(received, { stream: true })
    if (text === '') return
    // The LF of a CRLF that was split.
    if (this.#endsWithCr && text.startsWith('\n')) text = text.slice(1)
    this.#endsWithCr = text.endsWith('\r')
    const lines = text.split(LINE_END)
    const rest = lines.pop() as string
    for (const line of lines) {
      this.#append(line)
      this.#onLine(this.#line)
      this.#line = ''
    }
    this.#append(rest)
  }

  #append(text: string): void {
    const room = LIMITS.messageBytes - this.#line.length
    this.#bytes += Buffer.byteLength(text)
    if (text.length > room) this.#isCut = true
    this.#line += text.slice(0, Math.max(0, room))
  }

  #onLine(line: string): void {
    this.#bytes += 1
    if (line === '') return void this.#dispatch()
    const [, name, value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? []
    if (name === 'data') this.#addData(value)
    else if (name === 'event') this.#event = value.slice(0, FIELD_CHARS_MAX)
    else if (name === 'id') this.#id = value.slice(0, FIELD_CHARS_MAX)
  }

  #addData(value: string): void {
    const room = LIMITS.messageBytes - this.#dataChars
    if (value.length > room) this.#isCut = true
    if (room <= 0) return
    this.#data.push(value.slice(0, room))
    this.#dataChars += Math.min(room, value.length) + 1
  }

  /** An event without data, such as a comment, is none. */
  #dispatch(): void {
    if (this.#data.length > 0)
      this.#onMessage({
        data: this.#data.join('\n'),
        event: this.#event,
        id: this.#id,
        bytes: this.#bytes,
        cut: this.#isCut,
      })
    this.#data = []
    this.#dataChars = 0
    this.#event = undefined
    this.#bytes = 0
    this.#isCut = false
  }
}
