// One stream of a session: a Duplex that can be used like a net.Socket, also by Node's HTTP client and
// server.
import { ACK, FIN, INITIAL_WINDOW, ProtocolError, RST, SYN, TYPE_WINDOW_UPDATE, UINT32_MAX } from './frame.ts'
import { ReceiveWindow, type SessionBudget } from './receive-window.ts'
import type { FrameSource, Sender } from './sender.ts'
import { SocketDuplex } from './socket-duplex.ts'
import { Unread } from './unread.ts'
import { Unsent } from './unsent.ts'

/** How much a stream buffers for its writer. The window of the peer limits how much of it can be sent. */
const WRITABLE_BYTES = INITIAL_WINDOW
const WRITABLE_BYTES_UNDER_PRESSURE = 32 * 1024

type Done = (error?: Error | null) => void

/** The session, as its streams see it. */
export interface StreamOwner {
  readonly sender: Sender
  readonly budget: SessionBudget
  rttMs(): number | undefined
  /** Called before a reader gets data. It may destroy streams. */
  readonly onTransfer: (() => void) | undefined
  /** Called when the stream has ended. If `isHalfOpen`, it sent FIN, and the peer may still send data. */
  release(stream: YamuxStream, isHalfOpen: boolean): void
}

export interface StreamObserver {
  /** Called when a stream buffers data that its reader has not taken. */
  onUnread(): void
}

/** `end` half-closes the stream; `destroy` resets it, unless both sides have ended. */
export class YamuxStream extends SocketDuplex implements FrameSource {
  readonly id: number
  isQueued = false
  observer: StreamObserver | undefined
  readonly #owner: StreamOwner
  readonly #window: ReceiveWindow
  readonly #unread = new Unread()
  /** Bytes in the buffer of the Readable. */
  #pushedBytes = 0
  readonly #unsent = new Unsent()
  /** Size of the current write. */
  #writeBytes = 0
  #written: Done | undefined
  #finished: Done | undefined
  #sendWindow = INITIAL_WINDOW
  /** SYN or ACK, until it is sent with a frame. */
  #flags: number
  #isFinSent = false
  #isFinReceived = false
  #isReleased = false

  /** @internal Streams are created by a session: by `open`, or when the peer opens one. */
  constructor(owner: StreamOwner, id: number, isOurs: boolean) {
    // A readable high-water mark of 1: unread data stays in `#unread`, where its memory is bounded.
    const writableHighWaterMark = owner.budget.pressure?.isHigh
      ? WRITABLE_BYTES_UNDER_PRESSURE
      : WRITABLE_BYTES
    super({ allowHalfOpen: true, readableHighWaterMark: 1, writableHighWaterMark })
    this.id = id
    this.#owner = owner
    this.#window = new ReceiveWindow(owner.budget)
    this.#flags = isOurs ? SYN : ACK
    owner.sender.enqueue(this)
  }

  /** Bytes received that the reader has not taken; never more than the window. */
  get unreadBytes(): number {
    return this.#unread.bytes + this.readableLength
  }

  get receiveWindow(): number {
    return this.#window.size
  }

  /** A reader that kept data back calls it before it passes the data on; this may destroy streams. */
  onTransfer(): void {
    this.#owner.onTransfer?.()
  }

  override _write(chunk: Buffer, _encoding: BufferEncoding, done: Done): void {
    this.#unsent.add(chunk)
    this.#startWrite(done)
  }

  override _writev(writes: { chunk: Buffer }[], done: Done): void {
    for (const { chunk } of writes) this.#unsent.add(chunk)
    this.#startWrite(done)
  }

  override _final(done: Done): void {
    if (this.#isFinSent) done()
    else {
      this.#finished = done
      this.#owner.sender.enqueue(this)
    }
  }

  override _read(): void {
    this.#consumePushed()
    this.onTransfer()
    const chunk = this.#unread.shift()
    if (!chunk) return
    this.#pushedBytes = chunk.length
    this.push(chunk)
    this.#endIfRead()
  }

  override _destroy(error: Error | null, done: Done): void {
    if (!this.#isReleased) this.#abandon(error)
    this.#unsent.clear()
    this.#unread.clear()
    this.#written?.(error ?? new Error('The stream was destroyed.'))
    this.#written = undefined
    super._destroy(error, done)
  }

  /** @internal For the sender, like `writeFrame`. */
  get unsentBytes(): number {
    return this.#unsent.bytes
  }

  /** @internal */
  writeFrame(payloadMax: number): boolean {
    if (this.destroyed) return false
    const { sender } = this.#owner
    const length = Math.min(this.#unsent.bytes, this.#sendWindow, payloadMax)
    const isLast = length === this.#unsent.bytes
    const isEnd = isLast && !this.#isFinSent && this.#isEnding()
    const flags = this.#flags | (isEnd ? FIN : 0)
    this.#flags = 0
    if (length > 0) {
      this.#sendWindow -= length
      sender.data(flags, this.id, length)
      this.#unsent.sendTo(sender, length)
    } else if (flags !== 0) sender.header(TYPE_WINDOW_UPDATE, flags, this.id, 0)
    if (isEnd) this.#finSent(sender)
    if (isLast && this.#written) {
      sender.whenSent(this.#written)
      this.#written = undefined
    }
    return this.#unsent.bytes > 0 && this.#sendWindow > 0
  }

  /** @internal The peer announced a data frame. */
  onDataFrame(length: number): void {
    if (this.#isFinReceived && length > 0) throw new ProtocolError(`data after FIN on stream ${this.id}`)
    this.#window.receive(length)
  }

  /** @internal */
  onPayload(payload: Buffer): void {
    this.onTransfer()
    if (this.destroyed) return
    this.onActivity()
    this.bytesRead += payload.length
    if (this.#unread.bytes > 0 || this.readableLength > 0) {
      this.#unread.add(payload)
      this.observer?.onUnread()
    } else if (this.readableFlowing && this.readableEncoding === null) {
      // Does what `push` would do in this state, without scheduling another read.
      this.emit('data', payload)
      this.#consume(payload.length)
    } else {
      this.#pushedBytes += payload.length
      this.push(payload)
      if (this.readableLength === 0) this.#consumePushed()
      else this.observer?.onUnread()
    }
  }

  /** @internal */
  onWindowUpdate(credit: number): void {
    if (this.#sendWindow + credit > UINT32_MAX)
      throw new ProtocolError(`window of stream ${this.id} exceeds 2^32 - 1`)
    this.#sendWindow += credit
    if (this.#unsent.bytes > 0) this.#owner.sender.enqueue(this)
  }

  /** @internal */
  onFin(): void {
    if (this.#isFinReceived) throw new ProtocolError(`second FIN on stream ${this.id}`)
    this.#isFinReceived = true
    this.#endIfRead()
  }

  /** @internal The peer reset the stream, or the session ended. */
  onReset(error: Error): void {
    this.#release(false)
    this.destroy(error)
  }

  #startWrite(done: Done): void {
    this.onActivity()
    this.#writeBytes = this.#unsent.bytes
    this.bytesWritten += this.#writeBytes
    this.#written = done
    this.#owner.sender.enqueue(this)
  }

  /** Whether nothing follows the current write: then FIN is sent with its last data, before `_final`. */
  #isEnding(): boolean {
    return this.#finished !== undefined || (this.writableEnded && this.writableLength === this.#writeBytes)
  }

  #finSent(sender: Sender): void {
    this.#isFinSent = true
    if (this.#finished) sender.whenSent(this.#finished)
    this.#finished = undefined
    if (this.#isFinReceived && this.#unread.bytes === 0) this.#release(false)
  }

  /** A stream that both sides have ended counts as open until everything is read, because it uses memory. */
  #endIfRead(): void {
    if (!this.#isFinReceived || this.#unread.bytes > 0) return
    if (this.#isFinSent) this.#release(false)
    this.push(null)
  }

  #consumePushed(): void {
    const bytes = this.#pushedBytes
    this.#pushedBytes = 0
    if (bytes > 0) this.#consume(bytes)
  }

  #consume(bytes: number): void {
    if (this.#isFinReceived || this.#isReleased) return
    const credit = this.#window.consume(bytes, this.#owner.rttMs)
    if (credit > 0) this.#sendCredit(credit)
  }

  #sendCredit(credit: number): void {
    this.#owner.sender.control(TYPE_WINDOW_UPDATE, this.#flags, this.id, credit)
    this.#flags = 0
  }

  /** Ends the stream when it is destroyed before both sides have ended. */
  #abandon(error: Error | null): void {
    // After our FIN the peer may still be reading what we sent, and a reset would discard it. As in TCP, it
    // gets a reset if it sends more; the credit for unread data lets it send.
    const isOver = this.#isFinSent && this.#isFinReceived
    const isHalfOpen = this.#isFinSent && !isOver && !error
    if (isHalfOpen && this.#unread.bytes > 0) this.#sendCredit(this.#unread.bytes)
    if (!isHalfOpen && !isOver && this.#flags !== SYN)
      this.#owner.sender.control(TYPE_WINDOW_UPDATE, RST, this.id, 0)
    this.#release(isHalfOpen)
  }

  #release(isHalfOpen: boolean): void {
    if (this.#isReleased) return
    this.#isReleased = true
    this.#window.release()
    this.#owner.release(this, isHalfOpen)
  }
}
