// A WebSocket as a connection of bytes (RFC 6455): what is written is sent in binary messages, and the
// payload of binary messages is read, whatever their boundaries. No extensions, no text. It has what a
// session needs of a Duplex, and does not extend it: the buffers and events of a Duplex cost more than the
// frames.
import { createHash } from 'node:crypto'
import { EventEmitter } from 'node:events'
import type { Duplex } from 'node:stream'
import { type Connection, fillsMemory, joinInPlace, type SendCallback } from '../yamux/index.ts'
import { BINARY, CLOSE, createHeader, PING, PONG, WebSocketFrameParser } from './websocket-frames.ts'

/** Up to this size a message is copied into one buffer, which is cheaper than writing several. */
const COPY_BYTES_MAX = 4_096
const NORMAL = 1000
const PROTOCOL_ERROR = 1002
/** How long the peer has to reply to a close frame. */
const CLOSE_TIMEOUT_MS = 2_000

/** Value of Sec-WebSocket-Accept for a Sec-WebSocket-Key. */
export const acceptKey = (key: string) =>
  createHash('sha1').update(`${key}258EAFA5-E914-47DA-95CA-C5AB0DC85B11`).digest('base64')

export class WebSocketError extends Error {
  override name = 'WebSocketError'
}

interface WebSocketOptions {
  /** The client masks what it sends, and the server requires it. */
  readonly role: 'client' | 'server'
  /** What arrived together with the upgrade. */
  readonly head?: Buffer
}

export class WebSocketConnection extends EventEmitter implements Connection {
  readonly #socket: Duplex
  readonly #isClient: boolean
  readonly #parser: WebSocketFrameParser
  #isCloseSent = false
  /** Nothing follows: the peer has sent a close frame or has closed the connection. */
  #isEnded = false
  #isDestroyed = false
  /** Payload of the chunk that is being parsed. */
  #received: Buffer | undefined
  /** Nobody else uses the memory of that chunk. */
  #isOnlyUser = false
  /** Payload of the last ping that is not answered. */
  #pendingPong: Buffer | undefined
  #closeTimer: NodeJS.Timeout | undefined

  /** Receives nothing before `resume`. */
  constructor(socket: Duplex, { role, head }: WebSocketOptions) {
    super()
    this.#socket = socket
    this.#isClient = role === 'client'
    this.#parser = new WebSocketFrameParser(!this.#isClient, this)
    socket.pause()
    if (head && head.length > 0) socket.unshift(head)
    socket.on('data', (chunk: Buffer) => {
      this.#isOnlyUser = fillsMemory(chunk)
      this.#parser.parse(chunk)
      this.#deliver()
      this.#sendPong()
    })
    socket.on('drain', () => this.#sendPong())
    socket.on('end', () => this.#end())
    socket.on('error', (error) => this.destroy(error))
    socket.on('close', () => this.destroy())
  }

  get destroyed(): boolean {
    return this.#isDestroyed
  }

  /** Nothing may follow a close frame. */
  get writable(): boolean {
    return !this.#isCloseSent && this.#socket.writable
  }

  resume(): void {
    this.#socket.resume()
  }

  /** Sends the chunks in one message. */
  send(chunks: readonly Buffer[], done: SendCallback): void {
    let length = 0
    for (const chunk of chunks) length += chunk.length
    const socket = this.#socket
    if (!this.writable) process.nextTick(done, new WebSocketError('The connection is closed.'))
    else if (length === 0) process.nextTick(done)
    else if (length <= COPY_BYTES_MAX) socket.write(this.#message(BINARY, chunks, length), done)
    else {
      socket.cork()
      socket.write(createHeader(BINARY, length, this.#isClient, 0))
      for (const chunk of chunks) socket.write(chunk, chunk === chunks.at(-1) ? done : undefined)
      socket.uncork()
    }
  }

  /** Sends a close frame, and waits for that of the peer. */
  end(): void {
    this.#sendClose(NORMAL)
    if (!this.#isDestroyed) this.#closeTimer ??= setTimeout(() => this.destroy(), CLOSE_TIMEOUT_MS).unref()
  }

  destroy(error?: Error): void {
    if (this.#isDestroyed) return
    this.#isDestroyed = true
    clearTimeout(this.#closeTimer)
    this.#parser.stop()
    this.#socket.destroy()
    process.nextTick(() => {
      // What arrived before the end was read; how the connection closes does not matter.
      if (error && !this.#isEnded) this.emit('error', error)
      this.emit('close')
    })
  }

  /** Called by the parser, like the next two methods. Joins the payloads of the messages in one chunk. */
  onPayload(payload: Buffer): void {
    const joined = this.#received && joinInPlace(this.#received, payload)
    if (!joined) this.#deliver()
    this.#received = joined ?? payload
  }

  onControl(opcode: number, payload: Buffer): void {
    if (opcode === CLOSE) {
      this.#deliver()
      this.#end()
    } else if (opcode === PING) this.#pendingPong = Buffer.from(payload)
  }

  onProblem(problem: string): void {
    this.#sendClose(PROTOCOL_ERROR)
    this.destroy(new WebSocketError(`The peer sent ${problem}.`))
  }

  #message(opcode: number, chunks: readonly Buffer[], length: number): Buffer {
    const message = createHeader(opcode, length, this.#isClient, length)
    let offset = message.length - length
    for (const chunk of chunks) {
      message.set(chunk, offset)
      offset += chunk.length
    }
    return message
  }

  #sendControl(opcode: number, payload: Buffer): void {
    if (!this.writable) return
    this.#isCloseSent = opcode === CLOSE
    this.#socket.write(this.#message(opcode, [payload], payload.length))
  }

  #sendClose(code: number): void {
    const payload = Buffer.allocUnsafe(2)
    payload.writeUInt16BE(code)
    this.#sendControl(CLOSE, payload)
  }

  #deliver(): void {
    const received = this.#received
    this.#received = undefined
    if (received && !this.#isEnded && !this.#isDestroyed) this.emit('data', received, this.#isOnlyUser)
  }

  /**
   * Only the last of several pings is answered, which RFC 6455 allows: pongs neither fill the memory while
   * the peer does not read, nor cost a write for each ping of a flood.
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
    this.emit('end')
    this.end()
    this.#socket.end()
    // The socket closes only if it is read to its end.
    this.#socket.resume()
  }
}
