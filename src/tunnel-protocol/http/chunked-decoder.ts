// Decodes a body with Transfer-Encoding: chunked.
import { LineBuffer } from './line-buffer.ts'
import { HEAD_BYTES_MAX, InvalidResponse, parseHeaders, readFraming } from './response-head.ts'
import { TOKEN_CHARACTER } from './token.ts'

/** A size of at most 52 bits, and extensions, which are ignored. */
const TOKEN = `${TOKEN_CHARACTER}+`
const SIZE_LINE = new RegExp(`^([0-9A-Fa-f]{1,13})(?:;${TOKEN}(?:=(?:${TOKEN}|"[\\t\\x20!#-\\[\\]-~]*"))?)*$`)
/** Extensions and trailers of all chunks together. */
const EXTRA_BYTES_MAX = HEAD_BYTES_MAX

export class ChunkedDecoder {
  readonly #lines = new LineBuffer('\r\n')
  #state: 'size' | 'data' | 'end of data' | 'trailers' | 'complete' = 'size'
  #dataLeft = 0
  #extraBytes = 0
  #trailerLines = ''

  get isComplete(): boolean {
    return this.#state === 'complete'
  }

  /** Memory of lines and trailers that have not arrived completely. */
  get allocated(): number {
    return this.#lines.allocated + this.#trailerLines.length
  }

  trailers(): string[] {
    const trailers = parseHeaders(this.#trailerLines, 0)
    if (readFraming(trailers) !== 'until close') throw new InvalidResponse('trailer that frames the body')
    return trailers
  }

  /** Decodes from `start` on. Returns the position behind what belongs to the body. */
  push(received: Buffer, start: number, onData: (data: Buffer) => void): number {
    let at = start
    while (at < received.length && this.#state !== 'complete') {
      if (this.#state === 'data') {
        const end = Math.min(received.length, at + this.#dataLeft)
        this.#dataLeft -= end - at
        if (this.#dataLeft === 0) this.#state = 'end of data'
        onData(received.subarray(at, end))
        at = end
      } else at = this.#readLine(received, at)
    }
    return at
  }

  #readLine(received: Buffer, at: number): number {
    const line = this.#lines.add(received, at)
    const bytes = line?.text.length ?? this.#lines.bytes
    if (this.#extraBytes + bytes > EXTRA_BYTES_MAX)
      throw new InvalidResponse('too many bytes besides the data')
    if (!line) return received.length
    if (this.#state === 'size') this.#onSize(line.text)
    else if (this.#state === 'trailers') this.#onTrailer(line.text)
    else if (line.text === '') this.#state = 'size'
    else throw new InvalidResponse('chunk that is longer than its size')
    return line.next
  }

  #onSize(line: string): void {
    const digits = SIZE_LINE.exec(line)?.[1]
    if (digits === undefined) throw new InvalidResponse('invalid size of a chunk')
    this.#extraBytes += line.length - digits.length
    this.#dataLeft = Number.parseInt(digits, 16)
    this.#state = this.#dataLeft === 0 ? 'trailers' : 'data'
  }

  #onTrailer(line: string): void {
    this.#extraBytes += line.length + 2
    if (line === '') this.#state = 'complete'
    else this.#trailerLines += `${line}\r\n`
  }
}
