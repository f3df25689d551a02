// The frames of yamux: a header of 12 bytes, big endian, and for data the payload after it.
export const HEADER_BYTES = 12
export const INITIAL_WINDOW = 256 * 1024
export const UINT32_MAX = 0xffff_ffff

export const TYPE_DATA = 0
export const TYPE_WINDOW_UPDATE = 1
export const TYPE_PING = 2
export const TYPE_GO_AWAY = 3

export const SYN = 1
export const ACK = 2
export const FIN = 4
export const RST = 8
const FLAGS_ALL = SYN | ACK | FIN | RST

export const GO_AWAY_NORMAL = 0
const GO_AWAY_PROTOCOL_ERROR = 1
const GO_AWAY_INTERNAL_ERROR = 2

/** The peer violated the protocol. The session is closed, and the message says why. */
export class ProtocolError extends Error {
  override readonly name = 'ProtocolError'
  readonly code = 'ERR_YAMUX_PROTOCOL'
}

export function goAwayCode(reason: Error | undefined): number {
  if (!reason) return GO_AWAY_NORMAL
  return reason instanceof ProtocolError ? GO_AWAY_PROTOCOL_ERROR : GO_AWAY_INTERNAL_ERROR
}

export function goAwayName(code: number): string {
  if (code === GO_AWAY_PROTOCOL_ERROR) return 'protocol error'
  return code === GO_AWAY_INTERNAL_ERROR ? 'internal error' : `error code ${code}`
}

export function writeHeader(
  target: Buffer,
  at: number,
  type: number,
  flags: number,
  id: number,
  length: number,
): void {
  target[at] = 0
  target[at + 1] = type
  target[at + 2] = 0
  target[at + 3] = flags
  target[at + 4] = id >>> 24
  target[at + 5] = id >>> 16
  target[at + 6] = id >>> 8
  target[at + 7] = id
  target[at + 8] = length >>> 24
  target[at + 9] = length >>> 16
  target[at + 10] = length >>> 8
  target[at + 11] = length
}

interface FrameHandler {
  /** For data, `length` bytes of payload follow. */
  onFrame(type: number, flags: number, id: number, length: number): void
  /** A piece of the payload; `left` bytes of it are still to come. Shares memory with the input. */
  onPayload(piece: Buffer, left: number): void
}

/** Splits the bytes of a connection into frames. Payloads are passed on as they arrive, without copying. */
export class YamuxFrameParser {
  readonly #handler: FrameHandler
  /** A header that arrives in pieces. */
  #header: Buffer | undefined
  #headerBytes = 0
  #payloadLeft = 0
  #isStopped = false

  constructor(handler: FrameHandler) {
    this.#handler = handler
  }

  /** Ignores all further input, also the rest of the input that is being parsed. */
  stop(): void {
    this.#isStopped = true
  }

  push(input: Buffer): void {
    const end = input.length
    let at = 0
    while (at < end && !this.#isStopped) {
      if (this.#payloadLeft > 0) at = this.#pushPayload(input, at)
      else if (this.#headerBytes === 0 && end - at >= HEADER_BYTES) {
        this.#parse(input, at)
        at += HEADER_BYTES
      } else at = this.#pushHeader(input, at)
    }
  }

  #pushPayload(input: Buffer, at: number): number {
    const next = Math.min(input.length, at + this.#payloadLeft)
    this.#payloadLeft -= next - at
    this.#handler.onPayload(input.subarray(at, next), this.#payloadLeft)
    return next
  }

  #pushHeader(input: Buffer, at: number): number {
    const next = Math.min(input.length, at + HEADER_BYTES - this.#headerBytes)
    this.#header ??= Buffer.allocUnsafeSlow(HEADER_BYTES)
    this.#headerBytes += input.copy(this.#header, this.#headerBytes, at, next)
    if (this.#headerBytes === HEADER_BYTES) {
      this.#headerBytes = 0
      this.#parse(this.#header, 0)
    }
    return next
  }

  #parse(bytes: Buffer, at: number): void {
    const version = bytes[at] as number
    const type = bytes[at + 1] as number
    const flags = bytes.readUInt16BE(at + 2)
    const id = bytes.readUInt32BE(at + 4)
    const length = bytes.readUInt32BE(at + 8)
    if (version !== 0) throw new ProtocolError(`unsupported version ${version} (expected 0)`)
    if (type > TYPE_GO_AWAY) throw new ProtocolError(`unknown frame type ${type}`)
    if (flags > FLAGS_ALL) throw new ProtocolError(`reserved flags are set: 0x${flags.toString(16)}`)
    if ((id === 0) !== type >= TYPE_PING)
      throw new ProtocolError(`invalid stream id ${id} for a frame of type ${type}`)
    if (type === TYPE_DATA) this.#payloadLeft = length
    this.#handler.onFrame(type, flags, id, length)
  }
}
