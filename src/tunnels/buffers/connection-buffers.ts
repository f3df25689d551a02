// What a stream of a tunnel and the connection that it carries keep in memory, in both directions.
import type { Readable, Writable } from 'node:stream'
import type { StreamObserver, YamuxStream } from '../../yamux/index.ts'
import type { BufferBudget, BufferUser } from './buffer-budget.ts'
import { TransferRate } from './transfer-rate.ts'

/** The connection that a stream carries. A request is read apart from its socket. */
export interface Endpoint {
  readonly readable: Readable
  readonly writable: Writable
}

export class ConnectionBuffers implements BufferUser, StreamObserver {
  readonly #budget: BufferBudget
  readonly #rate: TransferRate
  #endpoint: Endpoint | undefined
  #stream: YamuxStream | undefined
  #bytes = 0
  #isReleased = false

  constructor(budget: BufferBudget, now: number) {
    this.#budget = budget
    this.#rate = new TransferRate(now)
  }

  /** Of the visitor. Empty if it is not known. */
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
    if (!this.#isReleased) this.#set(this.#measure())
  }

  /** Resets the stream. */
  evict(): void {
    const stream = this.#ownStream()
    this.#release()
    stream?.destroy(new Error('The stream was too slow.'))
  }

  /** To be called after bytes were written to either end. */
  transferred(bytes: number): void {
    this.#rate.add(bytes)
    this.update()
  }

  /** The connection is closed. The stream may still be sending what was written to it. */
  release(): void {
    const stream = this.#ownStream()
    if (stream && !stream.destroyed && stream.writableLength > 0) stream.once('close', () => this.#release())
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
    const streamBytes = stream ? stream.unreadBytes + stream.writableLength : 0
    if (!this.#endpoint) return streamBytes
    const { readable, writable } = this.#endpoint
    // One that is paused fills its buffer without a notification.
    const unread = readable.isPaused() ? Math.max(readable.readableLength, readable.readableHighWaterMark) : 0
    return streamBytes + unread + writable.writableLength
  }

  /** Undefined if the stream carries another request by now. */
  #ownStream(): YamuxStream | undefined {
    return this.#stream?.observer === this ? this.#stream : undefined
  }
}
