// Writes the frames of a session to its connection. Frames of one turn of the event loop are sent in one
// write. Control frames go first, then streams with little to send, and then the others, which take turns
// with one frame each. While a write is in progress, data stays in the streams, so that it neither fills the
// memory nor delays the other streams.
import type { Connection, SendCallback } from './connection.ts'
import { HEADER_BYTES, ProtocolError, TYPE_DATA, writeHeader } from './frame.ts'

/** Bytes of one write; a single frame if only one stream has data. */
const BATCH_BYTES = 256 * 1024
/** Payload of a frame while other streams wait for their turn. Smaller ones cost the receiver more writes. */
const SHARED_PAYLOAD_MAX = 128 * 1024
/** Streams with at most this much to send do not wait for the turns of the others. */
const SMALL_BYTES = 16 * 1024
/** The most of a write that such streams get. */
const SMALL_BATCH_BYTES = BATCH_BYTES / 2
/** Smaller payloads are copied behind their header: one copy is cheaper than one more buffer to write. */
const COPY_BYTES_MAX = 4 * 1024
const SLAB_BYTES = 64 * 1024
/** A peer that causes more control frames than this without reading them is flooding. */
const CONTROL_FRAMES_MAX = 8_192
const CONTROL_BATCH = 1_024

/** Buffer for headers and small payloads. All sessions share it, because most of them are idle. */
let slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
let slabEnd = 0

/** A stream with something to send. */
export interface FrameSource {
  /** Set by the sender while the stream waits for its turn. */
  isQueued: boolean
  readonly unsentBytes: number
  /** Writes one frame. Returns whether it could write another one. */
  writeFrame(payloadMax: number): boolean
}

interface SenderOptions {
  /** The peer does not read what it causes. */
  onFlood(error: Error): void
  /** Called before the frames of streams are collected. */
  readonly onFlush: (() => void) | undefined
}

export class Sender {
  readonly #connection: Connection
  readonly #options: SenderOptions
  /** Type, flags, id and length of each control frame. */
  #control: number[] = []
  /** What the next write sends. */
  #chunks: Buffer[] = []
  /** Offset of the first byte in the slab that is not in a chunk yet; undefined if there is none. */
  #start: number | undefined
  /** Streams that wait for their turn, with little to send and with much. */
  #small: FrameSource[] = []
  #large: FrameSource[] = []
  #batchBytes = 0
  /** Callbacks for the next write. */
  #writers: SendCallback[] = []
  /** Callbacks for the write in progress. */
  #sending: SendCallback[] | undefined
  #isScheduled = false
  #isSending = false
  #isClosed = false
  readonly #flush = () => this.flush()
  readonly #onSent = (error?: Error | null) => this.#afterSend(error)

  constructor(connection: Connection, options: SenderOptions) {
    this.#connection = connection
    this.#options = options
  }

  /** Queues a frame ahead of all data. */
  control(type: number, flags: number, id: number, length: number): void {
    if (this.#isClosed) return
    const frames = this.#control.length / 4
    if (frames >= CONTROL_BATCH && !this.#isSending) {
      // One turn of the event loop can produce this many although the peer reads them: no flood.
      this.#sendControl()
    } else if (frames >= CONTROL_FRAMES_MAX) {
      this.#control = []
      this.#options.onFlood(new ProtocolError(`flood: the peer has not read ${frames} control frames`))
      return
    }
    this.#control.push(type, flags, id, length)
    this.#schedule()
  }

  enqueue(source: FrameSource): void {
    if (source.isQueued || this.#isClosed) return
    source.isQueued = true
    this.#queueOf(source).push(source)
    this.#schedule()
  }

  /** Adds a frame without payload. Only for `writeFrame`, like `data`, `payload` and `whenSent`. */
  header(type: number, flags: number, id: number, length: number): void {
    this.#reserve(HEADER_BYTES)
    writeHeader(slab, slabEnd, type, flags, id, length)
    slabEnd += HEADER_BYTES
    this.#batchBytes += HEADER_BYTES
  }

  /** Adds the header of a data frame; call `payload` right after. */
  data(flags: number, id: number, length: number): void {
    this.header(TYPE_DATA, flags, id, length)
    this.#batchBytes += length
  }

  payload(bytes: Buffer): void {
    if (bytes.length > COPY_BYTES_MAX) {
      this.#closeSlab()
      this.#chunks.push(bytes)
      return
    }
    this.#reserve(bytes.length)
    slabEnd += bytes.copy(slab, slabEnd)
  }

  /** Calls back when everything added so far is sent. */
  whenSent(callback: SendCallback): void {
    this.#writers.push(callback)
  }

  flush(): void {
    this.#isScheduled = false
    if (this.#isClosed || this.#isSending) return
    this.#options.onFlush?.()
    this.#batchBytes = 0
    this.#addControl()
    this.#addStreams(this.#small, SMALL_BATCH_BYTES)
    this.#addStreams(this.#large, BATCH_BYTES)
    this.#send()
  }

  /** Writes the queued control frames, even during another write, and nothing after them. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#connection.writable) this.#sendControl()
    this.#small = []
    this.#large = []
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isSending) return
    this.#isScheduled = true
    // setImmediate, not nextTick: frames of all sockets that are readable in this turn are sent in one write.
    setImmediate(this.#flush)
  }

  #queueOf(source: FrameSource): FrameSource[] {
    return source.unsentBytes > SMALL_BYTES ? this.#large : this.#small
  }

  #addStreams(queue: FrameSource[], batchBytesMax: number): void {
    let taken = 0
    while (taken < queue.length && this.#batchBytes < batchBytesMax) {
      const source = queue[taken++] as FrameSource
      const payloadMax = taken < queue.length ? SHARED_PAYLOAD_MAX : BATCH_BYTES
      if (source.writeFrame(payloadMax)) this.#queueOf(source).push(source)
      else source.isQueued = false
    }
    queue.splice(0, taken)
  }

  #sendControl(): void {
    this.#addControl()
    this.#send()
  }

  #send(): void {
    this.#closeSlab()
    const chunks = this.#chunks
    this.#sending = this.#sending ? this.#sending.concat(this.#writers) : this.#writers
    this.#writers = []
    this.#chunks = []
    this.#isSending = true
    this.#connection.send(chunks, this.#onSent)
  }

  #afterSend(error?: Error | null): void {
    this.#isSending = false
    const writers = this.#sending ?? []
    this.#sending = undefined
    for (const writer of writers) writer(error)
    if (this.#control.length + this.#small.length + this.#large.length > 0) this.#schedule()
  }

  #addControl(): void {
    if (this.#control.length === 0) return
    const frames = this.#control
    this.#control = []
    for (let at = 0; at < frames.length; at += 4) {
      const [type, flags, id, length] = frames.slice(at, at + 4) as [number, number, number, number]
      this.header(type, flags, id, length)
    }
  }

  #closeSlab(): void {
    if (this.#start === undefined) return
    this.#chunks.push(slab.subarray(this.#start, slabEnd))
    this.#start = undefined
  }

  /** Makes room in the slab, or allocates another one. No other session uses the slab until `#send`. */
  #reserve(bytes: number): void {
    if (slabEnd + bytes > SLAB_BYTES) {
      this.#closeSlab()
      slab = Buffer.allocUnsafeSlow(SLAB_BYTES)
      slabEnd = 0
    }
    this.#start ??= slabEnd
  }
}
