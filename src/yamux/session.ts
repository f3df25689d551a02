// A yamux session: many streams over one connection. The protocol is that of hashicorp/yamux (spec.md there).
import { joinInPlace } from './buffers.ts'
import type { Connection } from './connection.ts'
import {
  ACK,
  FIN,
  GO_AWAY_NORMAL,
  goAwayCode,
  goAwayName,
  INITIAL_WINDOW,
  ProtocolError,
  RST,
  SYN,
  TYPE_DATA,
  TYPE_GO_AWAY,
  TYPE_PING,
  YamuxFrameParser,
} from './frame.ts'
import { type InputMemory, inputMemory } from './input-memory.ts'
import { type KeepAlive, Pings } from './pings.ts'
import type { GrowthBudget, MemoryPressure } from './receive-window.ts'
import { Sender } from './sender.ts'
import type { YamuxStream } from './stream.ts'
import { StreamTable } from './stream-table.ts'

const MAX_STREAMS = 1_000
/** More than Linux buffers for one TCP connection by default (6 MiB), so that TCP limits a transfer first. */
const WINDOW_MAX = 8 * 1024 * 1024
const SESSION_WINDOW_MAX = 64 * 1024 * 1024
/** How long the peer may take to read the GoAway frame and close the connection. */
const CLOSE_TIMEOUT_MS = 1_000

export interface SessionOptions {
  readonly role: 'client' | 'server'
  /** The peer opened a stream. Attach an `error` listener: a reset is an error. */
  onStream(stream: YamuxStream): void
  /** Called once; the reason is undefined for an orderly close. */
  onClose(reason: Error | undefined): void
  /** The peer does not accept new streams. */
  onGoAway?(): void
  /** Maximum of open streams of the peer; more are reset. */
  readonly maxStreams?: number
  /** Limit of the receive window of a stream, which starts at 256 KiB and grows as needed. */
  readonly windowMax?: number
  /** Limit of the growth of all windows of the session. */
  readonly sessionWindowMax?: number
  /** Limit of the growth of all windows of the sessions that share it. */
  readonly totalGrowth?: GrowthBudget
  /** While it is high, windows of slow readers shrink, and new streams buffer little of what is written. */
  readonly pressure?: MemoryPressure | undefined
  /**
   * Called before each input is parsed, before a reader gets data, and before each output is written. It may
   * destroy streams.
   */
  readonly onTransfer?: (() => void) | undefined
  /** Pings an idle peer, and closes the session if there is no response. */
  readonly keepAlive?: KeepAlive
}

export class Session {
  readonly #connection: Connection
  readonly #options: SessionOptions
  readonly #windowMax: number
  readonly #sender: Sender
  readonly #pings: Pings
  readonly #streams: StreamTable
  readonly #parser: YamuxFrameParser
  /** The stream of the payload that is being received; undefined if the payload is discarded. */
  #receiver: YamuxStream | undefined
  /** Joined payloads of the current input that are not delivered to their stream yet. */
  #unread: { stream: YamuxStream; bytes: Buffer } | undefined
  /** The memory of the current input; undefined if it is not to be freed. */
  #memory: InputMemory | undefined
  #isFinNext = false
  #isGoAwayReceived = false
  #isClosed = false

  constructor(connection: Connection, options: SessionOptions) {
    this.#connection = connection
    this.#options = options
    this.#windowMax = Math.max(INITIAL_WINDOW, options.windowMax ?? WINDOW_MAX)
    this.#sender = new Sender(connection, {
      onFlood: (error) => this.close(error),
      onFlush: options.onTransfer,
    })
    this.#pings = new Pings(this.#sender)
    this.#streams = this.#createTable()
    this.#parser = new YamuxFrameParser({
      onFrame: (type, flags, id, length) => this.#onFrame(type, flags, id, length),
      onPayload: (piece, left) => this.#onPayload(piece, left),
    })
    connection.on('data', (input, isOnlyUser) => this.#onInput(input, isOnlyUser))
    connection.on('error', (error) => this.close(error))
    connection.on('end', () => this.#onEnd())
    connection.on('close', () => this.#onEnd())
    connection.resume()
    if (options.keepAlive) this.#startKeepAlive(options.keepAlive)
  }

  get streams(): number {
    return this.#streams.size
  }

  openStreams(): YamuxStream[] {
    return [...this.#streams.all()]
  }

  /** The peer does not accept new streams. */
  get isGoingAway(): boolean {
    return this.#isGoAwayReceived
  }

  get isClosed(): boolean {
    return this.#isClosed
  }

  open(): YamuxStream {
    if (this.#isClosed) throw new Error('The session is closed.')
    if (this.#isGoAwayReceived) throw new Error('The peer does not accept new streams.')
    const stream = this.#streams.open()
    if (stream) return stream
    const error = new Error('The session has used all stream ids.')
    this.close(error)
    throw error
  }

  /** Resolves with the round-trip time in milliseconds. */
  ping(): Promise<number> {
    if (this.#isClosed) return Promise.reject(new Error('The session is closed.'))
    return this.#pings.ping()
  }

  probe(): Promise<void> {
    if (this.#isClosed) return Promise.reject(new Error('The session is closed.'))
    return this.#pings.probe()
  }

  /**
   * Asks the peer not to open new streams. Open streams continue, and streams that the peer opens before it
   * reads this are accepted. The caller closes the session.
   */
  goAway(): void {
    this.#sender.control(TYPE_GO_AWAY, 0, 0, GO_AWAY_NORMAL)
  }

  /** Destroys all streams and the connection. A reason is reported to the peer as an error. */
  close(reason?: Error): void {
    if (this.#isClosed) return
    this.#isClosed = true
    this.#parser.stop()
    // Before an orderly close, sends what was written, as far as the connection takes it.
    if (!reason) this.#sender.flush()
    const error = reason ?? connectionReset('The session was closed.')
    for (const stream of this.#streams.all()) stream.onReset(error)
    this.#pings.close(error)
    this.#sender.control(TYPE_GO_AWAY, 0, 0, goAwayCode(reason))
    this.#sender.close()
    setTimeout(() => this.#connection.destroy(), CLOSE_TIMEOUT_MS).unref()
    this.#connection.end()
    this.#options.onClose(reason)
  }

  #createTable(): StreamTable {
    const { sessionWindowMax: bytesLeft = SESSION_WINDOW_MAX, totalGrowth, pressure } = this.#options
    const total = totalGrowth ?? { bytesLeft }
    const owner = {
      sender: this.#sender,
      budget: { windowMax: this.#windowMax, lastGrown: 0, bytesLeft, total, pressure },
      rttMs: () => this.#pings.rttMs(),
      onTransfer: this.#options.onTransfer,
      release: (stream: YamuxStream, isHalfOpen: boolean) => this.#streams.release(stream, isHalfOpen),
    }
    return new StreamTable(owner, this.#options.role, this.#options.maxStreams ?? MAX_STREAMS)
  }

  #startKeepAlive(options: KeepAlive): void {
    this.#pings.keepAlive(options, () =>
      this.close(new Error(`Keep-alive timeout: nothing received within ${options.timeoutMs} ms of a ping.`)),
    )
  }

  #onInput(input: Buffer, isOnlyUser = false): void {
    this.#pings.onReceived(input.length)
    this.#options.onTransfer?.()
    if (this.#isClosed) return
    this.#memory = inputMemory(input, isOnlyUser)
    try {
      this.#parser.push(input)
      this.#deliver()
    } catch (error) {
      this.close(error as Error)
      // Any other error was thrown by a listener.
      if (!(error instanceof ProtocolError)) throw error
    } finally {
      this.#memory = undefined
    }
  }

  #onEnd(): void {
    const { size } = this.#streams
    const isOrderly = this.#isGoAwayReceived || size === 0
    this.close(isOrderly ? undefined : connectionReset(`The connection ended with ${size} open streams.`))
  }

  #onFrame(type: number, flags: number, id: number, length: number): void {
    if (type === TYPE_PING) this.#onPing(flags, length)
    else if (type === TYPE_GO_AWAY) this.#onGoAway(length)
    else this.#onStreamFrame(type, flags, id, length)
  }

  #onStreamFrame(type: number, flags: number, id: number, length: number): void {
    const continues =
      type === TYPE_DATA && id === this.#unread?.stream.id && length > 0 && !(flags & (SYN | RST))
    if (!continues) this.#deliver()
    this.#receiver = undefined
    const stream = flags & SYN ? this.#accept(id) : this.#streams.find(id)
    if (!stream) this.#onLateFrame(type, flags, id, length)
    else if (flags & RST) this.#streams.reset(stream, connectionReset('The peer reset the stream.'))
    else if (type === TYPE_DATA) {
      stream.onDataFrame(length)
      this.#receiver = stream
      this.#isFinNext = (flags & FIN) !== 0
      if (length === 0 && this.#isFinNext) stream.onFin()
    } else {
      stream.onWindowUpdate(length)
      if (flags & FIN) stream.onFin()
    }
  }

  #accept(id: number): YamuxStream | undefined {
    const stream = this.#streams.accept(id)
    if (stream) this.#options.onStream(stream)
    return stream
  }

  #onLateFrame(type: number, flags: number, id: number, length: number): void {
    if (flags & (FIN | RST)) this.#streams.onLateClose(id)
    if (type !== TYPE_DATA) return
    if (length > this.#windowMax)
      throw new ProtocolError(`frame of ${length} bytes (at most ${this.#windowMax} are allowed)`)
    if (length > 0) this.#streams.onLateData(id)
  }

  #onPayload(piece: Buffer, left: number): void {
    const stream = this.#receiver
    if (!stream) return
    const joined = this.#unread?.stream === stream ? joinInPlace(this.#unread.bytes, piece) : undefined
    if (!joined) this.#deliver()
    this.#unread = { stream, bytes: joined ?? piece }
    if (left > 0 || !this.#isFinNext) return
    this.#deliver()
    if (!stream.destroyed) stream.onFin()
  }

  /** Delivers payloads to their stream. Those of consecutive frames in one input are joined. */
  #deliver(): void {
    const unread = this.#unread
    this.#unread = undefined
    if (!unread) return
    this.#memory?.addUser(unread.bytes)
    unread.stream.onPayload(unread.bytes)
  }

  #onPing(flags: number, id: number): void {
    if (flags !== SYN && flags !== ACK) throw new ProtocolError(`invalid flags of a ping: ${flags}`)
    this.#pings.onPing(flags, id)
  }

  #onGoAway(code: number): void {
    // Data that the peer sent before the GoAway frame must arrive first.
    this.#deliver()
    if (code !== GO_AWAY_NORMAL) this.close(new Error(`The peer closed the session: ${goAwayName(code)}.`))
    else if (!this.#isGoAwayReceived) {
      this.#isGoAwayReceived = true
      this.#options.onGoAway?.()
    }
  }
}

const connectionReset = (message: string): Error => Object.assign(new Error(message), { code: 'ECONNRESET' })
