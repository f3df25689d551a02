// A WebSocket as a stream of bytes (RFC 6455): what is written is sent in binary messages, and the payload of
// binary messages is read, whatever their boundaries. No extensions, no text.
import { createHash } from 'node:crypto'
import { Duplex } from 'node:stream'
import { joinInPlace } from '../yamux/index.ts'
import { BINARY, CLOSE, createHeader, FrameParser, PING, PONG } from './websocket-frames.ts'

/** Up to this size a message is copied into one buffer, which is cheaper than writing several. */
const COPY_BYTES_MAX = 4_096
const NORMAL = 1000
const PROTOCOL_ERROR = 1002
/** How long the peer has to reply to a close frame. */
const CLOSE_TIMEOUT_MS = 2_000

/** Value of Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
export const acceptOf = (key: string) =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

export class WebSocketError extends Error {
  override name = 'WebSocketError'
}

export interface WebSocketOptions {
  /** The client masks what it sends, and the server requires it. */
  readonly role: 'client' | 'server'
  /** What arrived together with the upgrade. */
  readonly head?: Buffer
}

type Callback = (error?: Error | null) => void

export class WebSocketStream extends Duplex {
  readonly #socket: Duplex
  readonly #isClient: boolean
  readonly #parser: FrameParser
  /** Until the first read, so that errors in what is received find the listeners of the reader. */
  #isPaused = true
  #isCloseSent = false
  /** Nothing follows: the peer has sent a close frame or has closed the connection. */
  #isEnded = false
  /** Called when the socket accepts more. */
  #onDrain: Callback | undefined
  /** Payload of the chunk that is being parsed. */
  #received: Buffer | undefined
  /** Payload of the last ping that is not answered. */
  #pendingPong: Buffer | undefined
  #closeTimer: NodeJS.Timeout | undefined

  constructor(socket: Duplex, { role, head }: WebSocketOptions) {
    super({ allowHalfOpen: false })
    this.#socket = socket
    this.#isClient = role === 'client'
    this.#parser = new FrameParser(!this.#isClient, {
      onPayload: (payload) => this.#onPayload(payload),
      onControl: (opcode, payload) => this.#onControl(opcode, payload),
      onProblem: (problem) => {
        this.#sendClose(PROTOCOL_ERROR)
        this.destroy(new WebSocketError(`The peer sent ${problem}.`))
      },
    })
    socket.pause()
    if (head && head.length > 0) socket.unshift(head)
    socket.on('data', (chunk: Buffer) => {
      this.#parser.parse(chunk)
      this.#deliver()
      this.#sendPong()
    })
    socket.on('drain', () => this.#drained())
    socket.on('end', () => this.#end())
    // What arrived before the end can still be read.
    socket.on('error', (error) => this.#isEnded || this.destroy(error))
    socket.on('close', () => this.#isEnded || this.destroy())
  }

  override _read(): void {
    if (!this.#isPaused) return
    this.#isPaused = false
    this.#socket.resume()
  }

  override _write(chunk: Buffer, _encoding: string, done: Callback): void {
    this.#send([chunk], chunk.length, done)
  }

  override _writev(items: { chunk: Buffer }[], done: Callback): void {
    const chunks: Buffer[] = []
    let length = 0
    for (const { chunk } of items) {
      chunks.push(chunk)
      length += chunk.length
    }
    this.#send(chunks, length, done)
  }

  override _final(done: Callback): void {
    this.#sendClose(NORMAL)
    if (!this.#isEnded) this.#closeTimer = setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS).unref()
    done()
  }

  override _destroy(error: Error | null, done: Callback): void {
    clearTimeout(this.#closeTimer)
    this.#parser.stop()
    this.#socket.destroy()
    this.#drained()
    done(error)
  }

  #send(chunks: Buffer[], length: number, done: Callback): void {
    const socket = this.#socket
    // Nothing may follow a close frame.
    if (this.#isCloseSent || !socket.writable) return void done()
    let isAccepting: boolean
    if (length <= COPY_BYTES_MAX) isAccepting = socket.write(this.#message(BINARY, chunks, length))
    else {
      socket.cork()
      isAccepting = socket.write(createHeader(BINARY, length, this.#isClient, 0))
      for (const chunk of chunks) isAccepting = socket.write(chunk)
      socket.uncork()
    }
    if (isAccepting) done()
    else this.#onDrain = done
  }

  #drained(): void {
    this.#sendPong()
    const done = this.#onDrain
    this.#onDrain = undefined
    done?.()
  }

  #message(opcode: number, chunks: Buffer[], length: number): Buffer {
    const message = createHeader(opcode, length, this.#isClient, length)
    let offset = message.length - length
    for (const chunk of chunks) {
      message.set(chunk, offset)
      offset += chunk.length
    }
    return message
  }

  #sendControl(opcode: number, payload: Buffer): void {
    if (this.#isCloseSent || !this.#socket.writable) return
    this.#isCloseSent = opcode === CLOSE
    this.#socket.write(this.#message(opcode, [payload], payload.length))
  }

  #sendClose(code: number): void {
    const payload = Buffer.allocUnsafe(2)
    payload.writeUInt16BE(code)
    this.#sendControl(CLOSE, payload)
  }

  /** Joins the payloads of the messages in one chunk. */
  #onPayload(payload: Buffer): void {
    const joined = this.#received && joinInPlace(this.#received, payload)
    if (!joined) this.#deliver()
    this.#received = joined ?? payload
  }

  #deliver(): void {
    const received = this.#received
    this.#received = undefined
    if (!received || this.#isEnded || this.push(received) || this.#isPaused) return
    this.#isPaused = true
    this.#socket.pause()
  }

  #onControl(opcode: number, payload: Buffer): void {
    if (opcode === CLOSE) {
      this.#deliver()
      this.#sendClose(NORMAL)
      this.#socket.end()
      this.#end()
    } else if (opcode === PING) this.#pendingPong = Buffer.from(payload)
  }

  /**
   * Only the last of several pings is answered, which RFC 6455 allows: pongs neither fill the memory while the
   * peer does not read, nor cost a write for each ping of a flood.
   */
  #sendPong(): void {
    const pong = this.#pendingPong
    if (!pong || this.#socket.writableNeedDrain) return
    this.#pendingPong = undefined
    this.#sendControl(PONG, pong)
  }

  #end(): void {
    if (this.#isEnded) return
    this.#isEnded = true
    this.#parser.stop()
    // The socket closes only if it is read to its end.
    this.#isPaused = false
    this.#socket.resume()
    this.push(null)
  }
}
