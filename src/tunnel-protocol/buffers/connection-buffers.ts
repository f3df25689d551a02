// Accounts for the memory of a tunnel's stream and of the connection that it carries, in both directions.
import type { Readable, Writable } from 'node:stream'
import { type StreamObserver, YamuxStream } from '../../yamux/index.ts'
import type { BufferBudget, BufferUser } from './buffer-budget.ts'
import { TransferRate } from './transfer-rate.ts'

/** What a chunk takes beside its bytes: objects of V8, and up to three entries in a queue of writes. */
const CHUNK_OVERHEAD = 512
/** Less is not accounted for: a small request, of which there are many, costs only the comparison. */
const ACCOUNTED_BYTES_MIN = 4 * 1024
const INITIAL_CHUNK_BYTES = 16 * 1024

/** The connection that a stream carries. With HTTP, the request is read and the socket is written. */
export interface Endpoint {
  readonly readable: Readable
  readonly writable: Writable
}

export class ConnectionBuffers implements BufferUser, StreamObserver {
  bufferPosition = -1
  readonly #budget: BufferBudget
  readonly #rate: TransferRate
  #endpoint: Endpoint | undefined
  /** Moving averages of the sizes of chunks, to the stream and from it. */
  #chunkBytesIn = INITIAL_CHUNK_BYTES
  #chunkBytesOut = INITIAL_CHUNK_BYTES
  #stream: YamuxStream | undefined
  #bytes = 0
  #isReleased = false

  constructor(budget: BufferBudget, now: number) {
    this.#budget = budget
    this.#rate = new TransferRate(now)
  }

  /** The network of the visitor; empty if it is not known. */
  get network(): string {
    return ''
  }

  get bufferedBytes(): number {
    return this.#bytes
  }

  connect(endpoint: Endpoint): void {
    this.#endpoint = endpoint
  }

  /** The stream that carries the connection from now on. */
  attach(stream: YamuxStream): void {
    this.#detach()
    this.#stream = stream
    stream.observer = this
    this.update()
  }

  transferRate(now: number): number {
    return this.#rate.estimate(now)
  }

  onUnread(): void {
    this.update()
  }

  update(): void {
    if (this.#isReleased) return
    const bytes = this.#measure()
    this.#set(bytes < ACCOUNTED_BYTES_MIN ? 0 : bytes)
  }

  /** Resets the stream. */
  evict(): void {
    const stream = this.#ownStream()
    this.#release()
    stream?.destroy(new Error('The stream was too slow.'))
  }

  /** Call this after a chunk was written to the stream. */
  transferredIn(bytes: number): void {
    this.#chunkBytesIn += (bytes - this.#chunkBytesIn) / 8
    this.#rate.add(bytes)
    this.update()
  }

  /** Call this after a chunk of the stream was written. */
  transferredOut(bytes: number): void {
    this.#chunkBytesOut += (bytes - this.#chunkBytesOut) / 8
    this.#rate.add(bytes)
    this.update()
  }

  /** The connection is closed. The stream may still be sending what was written to it. */
  release(): void {
    const stream = this.#ownStream()
    // The stream may be used again, for many requests: what is not accounted for must not add listeners.
    const isSending = stream && !stream.destroyed && stream.writableLength >= ACCOUNTED_BYTES_MIN
    if (isSending) stream.once('close', () => this.#release())
    else this.#release()
  }

  #release(): void {
    this.#detach()
    this.#set(0)
    this.#isReleased = true
  }

  #detach(): void {
    const stream = this.#ownStream()
    if (stream) stream.observer = undefined
  }

  #set(bytes: number): void {
    const change = bytes - this.#bytes
    if (change === 0) return
    this.#bytes = bytes
    this.#budget.change(this, change)
  }

  #measure(): number {
    const stream = this.#ownStream()
    const unread = stream?.unreadBytes ?? 0
    const bytesIn = (stream?.writableLength ?? 0) + this.#endpointUnread()
    const bytesOut = this.#endpoint?.writable.writableLength ?? 0
    return (
      unread + estimateMemory(bytesIn, this.#chunkBytesIn) + estimateMemory(bytesOut, this.#chunkBytesOut)
    )
  }

  #endpointUnread(): number {
    const readable = this.#endpoint?.readable
    if (readable instanceof YamuxStream) return readable.unreadBytes
    // A paused stream fills its buffer without a notification.
    return readable?.isPaused() ? Math.max(readable.readableLength, readable.readableHighWaterMark) : 0
  }

  /** What the stream received before it was attached is included. */
  protected get bytesReceived(): number {
    return this.#ownStream()?.bytesRead ?? 0
  }

  protected resetStream(): void {
    this.#ownStream()?.destroy()
  }

  /** Undefined if the stream carries another request by now. */
  #ownStream(): YamuxStream | undefined {
    return this.#stream?.observer === this ? this.#stream : undefined
  }
}

/** The overhead of a chunk dominates if chunks are small. */
const estimateMemory = (bytes: number, chunkBytes: number) =>
  bytes === 0 ? 0 : bytes + Math.ceil(bytes / Math.max(1, chunkBytes)) * CHUNK_OVERHEAD
