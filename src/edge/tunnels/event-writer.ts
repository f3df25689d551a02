// Writes events to a stream, as JSON lines: those for a tunnel client, and for a peer. Events are collected
// for a moment, so that a busy tunnel sends many at once, and dropped while the receiver does not read them.
import type { Writable } from 'node:stream'

const FLUSH_DELAY_MS = 50
const UNREAD_BYTES_MAX = 256 * 1024

export class EventWriter {
  readonly #stream: Writable
  #lines = ''
  #timer: NodeJS.Timeout | undefined

  constructor(stream: Writable) {
    this.#stream = stream
    stream.on('error', () => {})
  }

  sendNow(event: object): void {
    this.send(event)
    this.flush()
  }

  send(event: object): void {
    if (this.#lines.length + this.#stream.writableLength > UNREAD_BYTES_MAX) return
    this.#lines += `${JSON.stringify(event)}\n`
    this.#timer ??= setTimeout(() => this.flush(), FLUSH_DELAY_MS).unref()
  }

  flush(): void {
    clearTimeout(this.#timer)
    this.#timer = undefined
    if (this.#lines !== '' && this.#stream.writable) this.#stream.write(this.#lines)
    this.#lines = ''
  }
}
