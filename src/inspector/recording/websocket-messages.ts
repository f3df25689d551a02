// Messages of a WebSocket in both directions, also compressed (permessage-deflate, RFC 7692).
import { constants, inflateRawSync } from 'node:zlib'
import { LIMITS } from '../api.ts'
import type { RecordedMessage } from '../store/exchange.ts'
import { type FrameMessage, FrameReader } from './websocket-frames.ts'

/** A message that is larger as transferred is not decoded, and neither are those after it. */
const COMPRESSED_BYTES_MAX = 256 * 1024
const INFLATED_BYTES_MAX = 1024 * 1024
const WINDOW_BYTES = 32 * 1024
/** What a sender removes from the end of each compressed message. */
const TAIL = Buffer.from([0x00, 0x00, 0xff, 0xff])
const TYPES = { 1: 'text', 2: 'binary', 8: 'close', 9: 'ping', 10: 'pong' } as const

type Sender = RecordedMessage['from']
export type NewMessage = Omit<RecordedMessage, 'number' | 'ms'>

interface MessageHandler {
  /** A frame begins. */
  onFrame(): void
  /** A message of that many bytes was inflated; also one that is not kept. */
  onInflated(bytes: number): void

  onMessage(message: NewMessage): void
}

export interface MessageReader {
  /** Bytes that it keeps for messages to come. */
  readonly keptBytes: number
  /** Throws if these are not frames. */
  push(received: Buffer): void
}

/** Reads the bytes of one direction. */
export function readMessages(from: Sender, extensions: string, handler: MessageHandler): MessageReader {
  const inflater = extensions.includes('permessage-deflate')
    ? new Inflater(!extensions.includes(`${from}_no_context_takeover`), (bytes) => handler.onInflated(bytes))
    : undefined
  const reader = new FrameReader(inflater ? COMPRESSED_BYTES_MAX : LIMITS.messageBytes, {
    onFrame: () => handler.onFrame(),
    onMessage: (frame) => {
      const message = toMessage(frame, inflater)
      if (message) handler.onMessage({ from, ...message })
    },
  })
  return {
    get keptBytes() {
      return reader.keptBytes + (inflater?.windowBytes ?? 0)
    },
    push: (received) => reader.push(received),
  }
}

function toMessage(
  frame: FrameMessage,
  inflater: Inflater | undefined,
): Omit<NewMessage, 'from'> | undefined {
  const { opcode, bytes, isCompressed } = frame
  const type = TYPES[opcode as keyof typeof TYPES]
  if (type === undefined) throw new Error('unknown frame')
  const inflated = isCompressed ? inflater?.inflate(frame) : undefined
  if (isCompressed && !inflated)
    return {
      type,
      bytes,
      cut: true,
      problem: 'The compressed message could not be decoded.',
      content: firstBytes(frame.payload),
    }
  const payload = inflated ?? frame.payload
  const isWhole = inflated !== undefined || payload.length === bytes
  const shown = payload.subarray(0, LIMITS.messageBytes)
  const cut = !isWhole || shown.length < payload.length
  if (type === 'text') return { type, bytes, cut, content: decodeText(shown) }
  if (type === 'close') {
    const code = payload.length >= 2 ? { code: payload.readUInt16BE(0) } : {}
    return { type, bytes, cut, content: decodeText(payload.subarray(2)), ...code }
  }
  const content = firstBytes(payload)
  return { type, bytes, cut: cut || content.length < payload.length, content }
}

/** A copy without the rest of the memory that the payload is in. */
function firstBytes(payload: Buffer): Buffer {
  const copy = Buffer.allocUnsafeSlow(Math.min(payload.length, LIMITS.hexBytes))
  payload.copy(copy)
  return copy
}

/** `stream`: a character at the end may be cut. */
const decodeText = (bytes: Buffer) => new TextDecoder().decode(bytes, { stream: true })

/** The messages of one direction may refer to the last 32 KiB of those before. */
class Inflater {
  readonly #hasContext: boolean
  readonly #onInflated: (bytes: number) => void
  #window = Buffer.alloc(0)
  #isLost = false

  constructor(hasContext: boolean, onInflated: (bytes: number) => void) {
    this.#hasContext = hasContext
    this.#onInflated = onInflated
  }

  get windowBytes(): number {
    return this.#window.length
  }

  /** Undefined if it is too large, or refers to a message that was. */
  inflate({ payload, bytes }: FrameMessage): Buffer | undefined {
    if (this.#isLost) return undefined
    const inflated = payload.length === bytes ? this.#inflateWhole(payload) : undefined
    if (!this.#hasContext) return inflated
    if (inflated) this.#window = Buffer.from(Buffer.concat([this.#window, inflated]).subarray(-WINDOW_BYTES))
    else this.#isLost = true
    return inflated
  }

  #inflateWhole(payload: Buffer): Buffer | undefined {
    let bytes = INFLATED_BYTES_MAX
    try {
      const inflated = inflateRawSync(Buffer.concat([payload, TAIL]), {
        finishFlush: constants.Z_SYNC_FLUSH,
        maxOutputLength: INFLATED_BYTES_MAX,
        ...(this.#window.length > 0 && { dictionary: this.#window }),
      })
      bytes = inflated.length
      return inflated
    } catch {
      return undefined
    } finally {
      this.#onInflated(bytes)
    }
  }
}
