// Closes a connection so that the client can read the last response. Closing a socket with unread input
// resets the connection, and a client that is still sending then sees the reset instead of the response.
import type { Duplex } from 'node:stream'

export interface GracefulCloseOptions {
  /** How much input is discarded; a client that sends more is cut off. */
  readonly discardBytesMax: number
  /** How long the client may take to close its side. */
  readonly timeoutMs: number
}

export class GracefulClose {
  readonly #socket: Duplex
  readonly #options: GracefulCloseOptions
  #isDiscarding = false
  #deadline: NodeJS.Timeout | undefined

  constructor(socket: Duplex, options: GracefulCloseOptions) {
    this.#socket = socket
    this.#options = options
  }

  /**
   * Half-closes the connection. The socket is destroyed once the client has closed its side, or at the
   * deadline.
   */
  start(): void {
    this.discardInput()
    this.#socket.end()
    this.destroyAfter(this.#options.timeoutMs)
  }

  /** Detaches the HTTP parser: no further input is interpreted. */
  discardInput(): void {
    if (this.#isDiscarding) return
    this.#isDiscarding = true
    const socket = this.#socket
    let bytesLeft = this.#options.discardBytesMax
    socket.removeAllListeners('data')
    socket.on('data', (chunk: Buffer) => {
      bytesLeft -= chunk.length
      if (bytesLeft < 0) socket.destroy()
    })
    socket.resume()
  }

  /** Replaces an earlier deadline. */
  destroyAfter(ms: number): void {
    if (this.#deadline) clearTimeout(this.#deadline)
    else this.#socket.once('close', () => clearTimeout(this.#deadline))
    this.#deadline = setTimeout(() => this.#socket.destroy(), ms).unref()
  }
}
