// Writes the frames of a session to its connection. Frames of one turn of the event loop leave in one write.
// Control frames go first; streams take turns with one frame each. While the connection is congested, data
// stays in the streams, so that it neither fills the memory nor delays the other streams.
import type { Duplex } from 'node:stream'
import { HEADER_BYTES, ProtocolError, TYPE_DATA, writeHeader } from './frame.ts'

/** Bytes passed to the connection at once; one frame, if only one stream has data. */
const BATCH_BYTES = 256 * 1024
/** Payload of a frame while other streams wait for their turn. */
const SHARED_PAYLOAD_MAX = 32 * 1024
/** Smaller payloads are copied behind their header: one copy is cheaper than one more buffer to write. */
const COPY_BYTES_MAX = 4 * 1024
/** Slabs of a busy session are large; an idle one has only its first, small one. */
const SLAB_BYTES_MIN = 1024
const SLAB_BYTES_MAX = 64 * 1024
/** A peer that causes more control frames than this without reading them is flooding. */
const CONTROL_FRAMES_MAX = 8_192
const CONTROL_BATCH = 1_024

/** A stream with something to send. */
export interface FrameSource {
  /** Set by the sender: it is waiting for its turn. */
  isQueued: boolean
  /** Writes one frame. Returns whether it could write another one. */
  writeFrame(sender: Sender, payloadMax: number): boolean
}

export class Sender {
  readonly #socket: Duplex
  readonly #onFlood: (error: Error) => void
  #control = Buffer.allocUnsafeSlow(32 * HEADER_BYTES)
  #controlBytes = 0
  /** Frames are collected in the slab from `#start` to `#end`, until they are written to the connection. */
  #slab = Buffer.allocUnsafeSlow(SLAB_BYTES_MIN)
  #start = 0
  #end = 0
  #ready: FrameSource[] = []
  #readyHead = 0
  #batchBytes = 0
  /** Callbacks of writers, called when the connection accepts more. */
  #written: (() => void)[] = []
  #isScheduled = false
  #isCongested = false
  #isClosed = false
  readonly #flush = () => this.flush()

  constructor(socket: Duplex, onFlood: (error: Error) => void) {
    this.#socket = socket
    this.#onFlood = onFlood
    socket.on('drain', () => {
      this.#isCongested = false
      this.#callWriters()
      this.flush()
    })
  }

  /** Queues a frame ahead of all data. */
  control(type: number, flags: number, id: number, length: number): void {
    if (this.#isClosed) return
    if (this.#controlBytes === this.#control.length && !this.#makeRoom()) return
    writeHeader(this.#control, this.#controlBytes, type, flags, id, length)
    this.#controlBytes += HEADER_BYTES
    this.#schedule()
  }

  enqueue(source: FrameSource): void {
    if (source.isQueued || this.#isClosed) return
    source.isQueued = true
    this.#ready.push(source)
    this.#schedule()
  }

  /** For sources, in `writeFrame`: a frame without payload. */
  header(type: number, flags: number, id: number, length: number): void {
    this.#reserve(HEADER_BYTES)
    writeHeader(this.#slab, this.#end, type, flags, id, length)
    this.#end += HEADER_BYTES
    this.#batchBytes += HEADER_BYTES
  }

  /** For sources, in `writeFrame`: a data frame; the payload is added with `payload` right after. */
  data(flags: number, id: number, length: number): void {
    this.header(TYPE_DATA, flags, id, length)
    this.#batchBytes += length
  }

  payload(bytes: Buffer): void {
    if (bytes.length > COPY_BYTES_MAX) {
      this.#writeSlab()
      this.#socket.write(bytes)
      return
    }
    this.#reserve(bytes.length)
    this.#end += bytes.copy(this.#slab, this.#end)
  }

  /** For sources, in `writeFrame`: calls back once the connection accepts more. */
  whenWritten(callback: () => void): void {
    this.#written.push(callback)
  }

  flush(): void {
    this.#isScheduled = false
    if (this.#isClosed || this.#isCongested) return
    this.#batchBytes = 0
    this.#socket.cork()
    this.#flushControl()
    this.#flushStreams()
    this.#writeSlab()
    this.#socket.uncork()
    this.#isCongested = this.#socket.writableNeedDrain
    if (this.#isCongested) return
    this.#callWriters()
    if (this.#readyHead < this.#ready.length) this.#schedule()
  }

  /** Writes the control frames that are queued, whether congested or not, and nothing after them. */
  close(): void {
    if (this.#isClosed) return
    this.#isClosed = true
    if (this.#socket.writable) {
      this.#flushControl()
      this.#writeSlab()
    }
    this.#ready = []
    this.#callWriters()
  }

  #schedule(): void {
    if (this.#isScheduled || this.#isCongested) return
    this.#isScheduled = true
    // Not nextTick: frames caused by all the sockets that are readable in this turn leave in one write.
    setImmediate(this.#flush)
  }

  #flushStreams(): void {
    while (this.#readyHead < this.#ready.length && this.#batchBytes < BATCH_BYTES) {
      const source = this.#ready[this.#readyHead++] as FrameSource
      const payloadMax = this.#readyHead < this.#ready.length ? SHARED_PAYLOAD_MAX : BATCH_BYTES
      if (source.writeFrame(this, payloadMax)) this.#ready.push(source)
      else source.isQueued = false
    }
    this.#ready.splice(0, this.#readyHead)
    this.#readyHead = 0
  }

  #callWriters(): void {
    const callbacks = this.#written
    if (callbacks.length === 0) return
    this.#written = []
    for (const callback of callbacks) callback()
  }

  #flushControl(): void {
    let at = 0
    while (at < this.#controlBytes) {
      this.#reserve(HEADER_BYTES)
      const next = Math.min(this.#controlBytes, at + this.#slab.length - this.#end)
      this.#end += this.#control.copy(this.#slab, this.#end, at, next)
      at = next
    }
    this.#controlBytes = 0
  }

  /** For more control frames. Many can be due in one turn of the event loop, without any congestion. */
  #makeRoom(): boolean {
    const frames = this.#controlBytes / HEADER_BYTES
    if (frames >= CONTROL_BATCH && !this.#isCongested) {
      this.#flushControl()
      this.#writeSlab()
      this.#isCongested = this.#socket.writableNeedDrain
    } else if (frames >= CONTROL_FRAMES_MAX) {
      this.#controlBytes = 0
      this.#onFlood(new ProtocolError(`flood: the peer has not read ${frames} control frames`))
      return false
    } else {
      const larger = Buffer.allocUnsafeSlow(this.#control.length * 2)
      this.#control.copy(larger)
      this.#control = larger
    }
    return true
  }

  #writeSlab(): void {
    if (this.#start === this.#end) return
    this.#socket.write(this.#slab.subarray(this.#start, this.#end))
    this.#start = this.#end
  }

  /** Makes room in the slab, by another one that is larger if it is full. */
  #reserve(bytes: number): void {
    if (this.#end + bytes <= this.#slab.length) return
    this.#writeSlab()
    const size = Math.min(Math.max(2 * this.#slab.length, bytes), SLAB_BYTES_MAX)
    this.#slab = Buffer.allocUnsafeSlow(size)
    this.#start = 0
    this.#end = 0
  }
}
