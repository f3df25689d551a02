// A connection to the local server of a tunnel client, which is a stream of the client's session. It carries
// one request at a time.
import type { YamuxStream } from '../../yamux/index.ts'

/** How long the local server may take to close its side of a connection. */
const CLOSE_TIMEOUT_MS = 5_000

/** The request that a connection carries. */
export interface ConnectionUser {
  onReceived(received: Buffer): void
  /** The local server has ended its side. */
  onEnd(): void
  onDrain(): void
  onClose(): void
}

export class UpstreamConnection {
  readonly stream: YamuxStream
  #request: ConnectionUser | undefined
  #isUsed = false

  constructor(stream: YamuxStream) {
    this.stream = stream
    stream.on('data', this.#onData)
    stream.on('end', this.#onEnd)
    stream.on('drain', this.#onDrain)
    stream.on('close', this.#onClose)
  }

  /** It has carried a request before, so the local server may be closing it. */
  get isUsed(): boolean {
    return this.#isUsed
  }

  /** Both directions are open. */
  get isOpen(): boolean {
    return this.stream.readable && this.stream.writable
  }

  /** The connection belongs to the request until it is released. */
  assign(request: ConnectionUser): void {
    this.#request = request
  }

  release(): void {
    this.#request = undefined
    this.#isUsed = true
  }

  /** Leaves the stream to another protocol. */
  detach(): YamuxStream {
    const { stream } = this
    this.#request = undefined
    stream.off('data', this.#onData)
    stream.off('end', this.#onEnd)
    stream.off('drain', this.#onDrain)
    stream.off('close', this.#onClose)
    return stream
  }

  /** Closes it, and resets it if the local server does not close its side, or sends more. */
  close(): void {
    const { stream } = this
    if (stream.destroyed) return
    stream.resume()
    stream.end()
    const timeout = setTimeout(
      () => stream.destroy(new Error('The stream was not closed.')),
      CLOSE_TIMEOUT_MS,
    ).unref()
    stream.once('close', () => clearTimeout(timeout))
  }

  // Without a request, data is unsolicited: it would be parsed as the response to the next request.
  readonly #onData = (data: Buffer) => {
    if (this.#request) this.#request.onReceived(data)
    else this.stream.destroy()
  }

  readonly #onEnd = () => {
    if (this.#request) this.#request.onEnd()
    else this.stream.destroy()
  }

  readonly #onDrain = () => this.#request?.onDrain()

  readonly #onClose = () => this.#request?.onClose()
}
