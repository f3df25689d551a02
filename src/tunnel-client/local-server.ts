// Connects streams of the tunnel to the local server and copies bytes in both directions.
import { lookup } from 'node:dns/promises'
import { connect, isIP } from 'node:net'
import { BufferBudget } from '../tunnel-protocol/buffers/buffer-budget.ts'
import { ConnectionBuffers } from '../tunnel-protocol/buffers/connection-buffers.ts'
import { connectStreams } from '../tunnel-protocol/connect-streams.ts'
import type { YamuxStream } from '../yamux/index.ts'

/** The limit of all connections together, in both directions. */
const BUFFERED_BYTES_MAX = 128 * 1024 * 1024
const CONNECT_TIMEOUT_MS = 5_000
/** Many development servers listen on only one of them, and resolvers differ in which they return. */
const LOCALHOST = ['127.0.0.1', '::1']

interface LocalServerOptions {
  /** Address of the local server. */
  readonly host: string
  readonly port: number
  /** Called once when the local server cannot be reached, and again only after it could be. */
  onUnreachable?(message: string): void
}

/** Serves the streams of a tunnel. */
export interface StreamServer {
  serve(stream: YamuxStream): void
  /** What it keeps in memory for slow readers. */
  readonly buffers?: BufferBudget
}

/** A stream of the tunnel that is served. */
interface ServedStream {
  readonly stream: YamuxStream
  readonly buffers: ConnectionBuffers
}

export class LocalServer implements StreamServer {
  /** Slow readers at either end do not fill the memory: beyond the limit, the slowest are reset. */
  readonly buffers = new BufferBudget(BUFFERED_BYTES_MAX)
  readonly #options: LocalServerOptions
  /** The one that worked last is the first. */
  #addresses: readonly string[] | undefined
  #resolving: Promise<readonly string[]> | undefined
  #isReported = false

  constructor(options: LocalServerOptions) {
    this.#options = options
  }

  /** Opens a connection for the stream. Resets the stream if that fails. */
  serve(stream: YamuxStream): void {
    const buffers = new ConnectionBuffers(this.buffers, performance.now())
    buffers.attach(stream)
    // A reset, or the end of the session. `close` follows.
    stream.on('error', () => undefined)
    stream.once('close', () => buffers.release())
    const connection = { stream, buffers }
    if (this.#addresses) this.#dial(connection, this.#addresses, 0)
    else
      this.#resolve().then(
        (addresses) => this.#dial(connection, addresses, 0),
        (error) => this.#fail(stream, error),
      )
  }

  #resolve(): Promise<readonly string[]> {
    this.#resolving ??= resolveHost(this.#options.host)
      .then((addresses) => {
        this.#addresses = addresses
        return addresses
      })
      .finally(() => {
        this.#resolving = undefined
      })
    return this.#resolving
  }

  #dial(served: ServedStream, addresses: readonly string[], index: number, firstError?: Error): void {
    const { stream, buffers } = served
    if (stream.destroyed) return
    const address = addresses[index] as string
    const socket = connect({ host: address, port: this.#options.port, noDelay: true, allowHalfOpen: true })
    const cancel = () => {
      clearTimeout(timer)
      socket.destroy()
    }
    const timer = setTimeout(() => socket.destroy(timeoutError(address)), CONNECT_TIMEOUT_MS)
    const onError = (error: Error) => {
      clearTimeout(timer)
      stream.off('close', cancel)
      if (index + 1 < addresses.length) this.#dial(served, addresses, index + 1, firstError ?? error)
      else this.#fail(stream, firstError ?? error)
    }
    stream.once('close', cancel)
    socket.once('error', onError)
    socket.once('connect', () => {
      clearTimeout(timer)
      stream.off('close', cancel)
      socket.off('error', onError)
      this.#isReported = false
      if (index > 0) this.#addresses = [address, ...addresses.filter((other) => other !== address)]
      buffers.connect({ readable: socket, writable: socket })
      connectStreams(
        stream,
        socket,
        (bytes) => buffers.transferredOut(bytes),
        (bytes) => buffers.transferredIn(bytes),
      )
    })
  }

  #fail(stream: YamuxStream, error: Error): void {
    // The name may have other addresses by now.
    this.#addresses = undefined
    stream.destroy(error)
    if (this.#isReported) return
    this.#isReported = true
    const { host, port, onUnreachable } = this.#options
    onUnreachable?.(`The local server at ${host}:${port} cannot be reached: ${error.message}.`)
  }
}

async function resolveHost(host: string): Promise<readonly string[]> {
  if (host === 'localhost') return LOCALHOST
  if (isIP(host)) return [host]
  return (await lookup(host, { all: true })).map(({ address }) => address)
}

const timeoutError = (address: string) =>
  new Error(`no connection to ${address} within ${CONNECT_TIMEOUT_MS / 1000} seconds`)
