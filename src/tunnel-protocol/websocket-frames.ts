// Frames of a WebSocket (RFC 6455): headers of those that are sent, and a parser of those that are received.

const CONTINUATION = 0
export const BINARY = 2
export const CLOSE = 8
export const PING = 9
export const PONG = 10
const FINAL = 0x80
const RESERVED = 0x70
const MASKED = 0x80
const CONTROL_BYTES_MAX = 125
/** A header with its longest length and a mask, and the payload of a control frame. */
const FRAME_BYTES_MAX = 14 + CONTROL_BYTES_MAX
/** From this size on, unmasking words instead of bytes pays off. */
const WORDS_BYTES_MIN = 64
/** 2^53 divided by 2^32: longer messages cannot be counted. */
const LENGTH_HIGH_MAX = 0x1f_ffff

/** A header with room for a payload. The mask is zero: masking matters only for scripts in browsers. */
export function createHeader(opcode: number, length: number, isMasked: boolean, room: number): Buffer {
  const lengthBytes = length < 126 ? 0 : length < 65_536 ? 2 : 8
  const size = 2 + lengthBytes + (isMasked ? 4 : 0)
  const header = Buffer.allocUnsafe(size + room)
  header[0] = FINAL | opcode
  header[1] = (lengthBytes === 0 ? length : lengthBytes === 2 ? 126 : 127) | (isMasked ? MASKED : 0)
  if (lengthBytes === 2) header.writeUInt16BE(length, 2)
  else if (lengthBytes === 8) {
    header.writeUInt16BE(0, 2)
    header.writeUIntBE(length, 4, 6)
  }
  if (isMasked) header.writeUInt32BE(0, size - 4)
  return header
}

interface FrameHandlers {
  /** A part of the payload of a binary message. */
  onPayload(payload: Buffer): void
  onControl(opcode: number, payload: Buffer): void
  /** The peer violates the protocol; nothing more is parsed. */
  onProblem(problem: string): void
}

export class WebSocketFrameParser {
  readonly #handlers: FrameHandlers
  readonly #expectsMask: boolean
  /** The start of a header, or of a control frame, that has not arrived completely. */
  #partial: Buffer | undefined
  #payloadLeft = 0
  /** Undefined for a mask of zeros too. */
  #mask: Buffer | undefined
  #maskOffset = 0
  #isInMessage = false
  #isStopped = false

  constructor(expectsMask: boolean, handlers: FrameHandlers) {
    this.#expectsMask = expectsMask
    this.#handlers = handlers
  }

  /** Ignores everything that follows. */
  stop(): void {
    this.#isStopped = true
  }

  /** Masked payload is unmasked in place. */
  parse(received: Buffer): void {
    let offset = this.#partial && !this.#isStopped ? this.#completePartial(this.#partial, received) : 0
    while (offset < received.length && !this.#isStopped) {
      if (this.#payloadLeft > 0) {
        const end = Math.min(received.length, offset + this.#payloadLeft)
        this.#deliver(received.subarray(offset, end))
        offset = end
      } else {
        const frameBytes = this.#readFrame(received, offset)
        // Copied, because a few bytes would keep the whole buffer in memory.
        if (frameBytes === 0) this.#partial = Buffer.from(received.subarray(offset))
        offset = frameBytes === 0 ? received.length : offset + frameBytes
      }
    }
  }

  /** Returns how many of the received bytes belong to the partial frame. */
  #completePartial(partial: Buffer, received: Buffer): number {
    const joined = Buffer.concat([partial, received.subarray(0, FRAME_BYTES_MAX - partial.length)])
    const frameBytes = this.#readFrame(joined, 0)
    this.#partial = frameBytes === 0 ? joined : undefined
    return frameBytes === 0 ? received.length : frameBytes - partial.length
  }

  #deliver(payload: Buffer): void {
    this.#payloadLeft -= payload.length
    if (this.#mask) {
      unmask(payload, this.#mask, this.#maskOffset)
      this.#maskOffset = (this.#maskOffset + payload.length) & 3
    }
    this.#handlers.onPayload(payload)
  }

  /**
   * Reads the header of a data frame, or a whole control frame. Returns its size, or 0 if it has not arrived
   * completely.
   */
  #readFrame(chunk: Buffer, start: number): number {
    const available = chunk.length - start
    if (available < 2) return 0
    const first = chunk[start] as number
    const second = chunk[start + 1] as number
    const isMasked = (second & MASKED) !== 0
    const shortLength = second & 0x7f
    const problem = this.#validateHeader(first, isMasked, shortLength)
    if (problem) return this.#fail(problem, available)
    const headerBytes = 2 + (shortLength < 126 ? 0 : shortLength === 126 ? 2 : 8) + (isMasked ? 4 : 0)
    const isControl = (first & 0x0f) >= CLOSE
    const size = isControl ? headerBytes + shortLength : headerBytes
    if (available < size) return 0
    const end = start + headerBytes
    const mask =
      isMasked && chunk.readUInt32BE(end - 4) !== 0 ? Buffer.from(chunk.subarray(end - 4, end)) : undefined
    if (isControl) this.#readControl(first & 0x0f, chunk.subarray(end, start + size), mask)
    else {
      const length = readLength(chunk, start + 2, shortLength)
      if (length === undefined) return this.#fail('a message of an invalid length', available)
      this.#isInMessage = (first & FINAL) === 0
      this.#payloadLeft = length
      this.#mask = mask
      this.#maskOffset = 0
    }
    return size
  }

  #validateHeader(first: number, isMasked: boolean, shortLength: number): string | undefined {
    const opcode = first & 0x0f
    if ((first & RESERVED) !== 0) return 'a frame with reserved bits'
    if (isMasked !== this.#expectsMask) return isMasked ? 'a masked frame' : 'a frame without a mask'
    if (opcode < CLOSE)
      return opcode === (this.#isInMessage ? CONTINUATION : BINARY)
        ? undefined
        : 'a frame that is not binary data'
    const isValid = opcode <= PONG && (first & FINAL) !== 0 && shortLength <= CONTROL_BYTES_MAX
    return isValid && !(opcode === CLOSE && shortLength === 1) ? undefined : 'an invalid control frame'
  }

  #readControl(opcode: number, received: Buffer, mask: Buffer | undefined): void {
    const payload = Buffer.from(received)
    if (mask) unmask(payload, mask, 0)
    this.#handlers.onControl(opcode, payload)
  }

  #fail(problem: string, available: number): number {
    this.#isStopped = true
    this.#handlers.onProblem(problem)
    return available
  }
}

function readLength(chunk: Buffer, start: number, shortLength: number): number | undefined {
  if (shortLength < 126) return shortLength
  if (shortLength === 126) return chunk.readUInt16BE(start)
  const high = chunk.readUInt32BE(start)
  return high > LENGTH_HIGH_MAX ? undefined : high * 2 ** 32 + chunk.readUInt32BE(start + 4)
}

function unmask(payload: Buffer, mask: Buffer, offset: number): void {
  let index = 0
  const unmaskUntil = (end: number) => {
    for (; index < end; index += 1)
      payload[index] = (payload[index] as number) ^ (mask[(offset + index) & 3] as number)
  }
  if (payload.length >= WORDS_BYTES_MIN) {
    unmaskUntil(-payload.byteOffset & 3)
    const rotated = Uint8Array.from([0, 1, 2, 3], (byte) => mask[(offset + index + byte) & 3] as number)
    const word = new Uint32Array(rotated.buffer)[0] as number
    const words = new Uint32Array(payload.buffer, payload.byteOffset + index, (payload.length - index) >> 2)
    for (let at = 0; at < words.length; at += 1) words[at] = (words[at] as number) ^ word
    index += words.length * 4
  }
  unmaskUntil(payload.length)
}
