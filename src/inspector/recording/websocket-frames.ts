// Parses the frames of one direction of a recorded WebSocket (RFC 6455). Unlike the parser of tunnel
// connections, it takes text, fragments and extensions, and keeps a limited part of each message.
import { RecordedBody } from '../store/recorded-body.ts'

const CONTROL = 8
const FINAL = 0x80
const COMPRESSED = 0x40
const MASKED = 0x80
const HEADER_BYTES_MAX = 14
const CONTROL_BYTES_MAX = 125

export interface FrameMessage {
  readonly opcode: number
  readonly isCompressed: boolean
  /** The whole payload, or its beginning. */
  readonly payload: Buffer
  /** The size of the whole payload, in all fragments. */
  readonly bytes: number
}

interface PartialMessage {
  readonly opcode: number
  readonly isCompressed: boolean
  /** The beginning. */
  readonly payload: RecordedBody
  bytes: number
}

interface FrameHandler {
  /** A frame begins. */
  onFrame(): void
  onMessage(message: FrameMessage): void
}

export class FrameReader {
  readonly #keptMax: number
  readonly #handler: FrameHandler
  #partial = Buffer.alloc(0)
  /** A data message may be interrupted by control frames. */
  #data: PartialMessage | undefined
  #current: PartialMessage | undefined
  #isFinal = false
  #left = 0
  #mask: Buffer | undefined
  #maskOffset = 0

  /** `keptMax`: how many bytes of a message are kept. */
  constructor(keptMax: number, handler: FrameHandler) {
    this.#keptMax = keptMax
    this.#handler = handler
  }

  /** What is kept of a message that has not arrived completely. */
  get keptBytes(): number {
    return this.#data?.payload.allocated ?? 0
  }

  /** Throws if these are not frames. */
  push(received: Buffer): void {
    let at = 0
    while (at < received.length)
      at = this.#current ? this.#readPayload(received, at) : this.#readHeader(received, at)
  }

  #readHeader(received: Buffer, at: number): number {
    const before = this.#partial.length
    const header = Buffer.concat([this.#partial, received.subarray(at, at + HEADER_BYTES_MAX - before)])
    const size = headerSize(header)
    if (header.length < size) {
      this.#partial = header
      return received.length
    }
    this.#partial = Buffer.alloc(0)
    this.#begin(header, size)
    if (this.#left === 0) this.#endFrame()
    return at + size - before
  }

  #begin(header: Buffer, size: number): void {
    this.#handler.onFrame()
    const [first = 0, second = 0] = header
    const opcode = first & 0x0f
    this.#isFinal = (first & FINAL) !== 0
    this.#left = readLength(header)
    this.#mask = (second & MASKED) !== 0 ? header.subarray(size - 4, size) : undefined
    this.#maskOffset = 0
    const isCompressed = (first & COMPRESSED) !== 0
    if (opcode >= CONTROL) {
      if (!this.#isFinal || this.#left > CONTROL_BYTES_MAX) throw new Error('invalid control frame')
      this.#current = { opcode, isCompressed: false, payload: new RecordedBody(CONTROL_BYTES_MAX), bytes: 0 }
      return
    }
    if ((opcode === 0) !== (this.#data !== undefined)) throw new Error('fragments out of order')
    this.#data ??= { opcode, isCompressed, payload: new RecordedBody(this.#keptMax), bytes: 0 }
    this.#current = this.#data
  }

  #readPayload(received: Buffer, at: number): number {
    const message = this.#current as PartialMessage
    const end = Math.min(received.length, at + this.#left)
    const kept = received.subarray(at, Math.min(end, at + this.#keptMax - message.payload.bytes))
    message.payload.add(this.#mask ? unmask(kept, this.#mask, this.#maskOffset) : kept)
    this.#maskOffset = (this.#maskOffset + end - at) & 3
    message.bytes += end - at
    this.#left -= end - at
    if (this.#left === 0) this.#endFrame()
    return end
  }

  #endFrame(): void {
    const message = this.#current as PartialMessage
    this.#current = undefined
    if (message === this.#data) {
      if (!this.#isFinal) return
      this.#data = undefined
    }
    const { opcode, isCompressed, payload, bytes } = message
    this.#handler.onMessage({ opcode, isCompressed, payload: payload.content, bytes })
  }
}

function unmask(masked: Buffer, mask: Buffer, offset: number): Buffer {
  const data = Buffer.from(masked)
  for (let index = 0; index < data.length; index += 1)
    data[index] = (data[index] as number) ^ (mask[(offset + index) & 3] as number)
  return data
}

/** At least 2, as far as the header has arrived. */
function headerSize(header: Buffer): number {
  const second = header[1] ?? 0
  const length = second & 0x7f
  return 2 + (length < 126 ? 0 : length === 126 ? 2 : 8) + ((second & MASKED) !== 0 ? 4 : 0)
}

function readLength(header: Buffer): number {
  const length = (header[1] ?? 0) & 0x7f
  if (length < 126) return length
  if (length === 126) return header.readUInt16BE(2)
  const long = header.readBigUInt64BE(2)
  if (long > BigInt(Number.MAX_SAFE_INTEGER)) throw new Error('invalid length of a frame')
  return Number(long)
}
