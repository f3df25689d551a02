// Connects streams of the tunnel to the local server and copies bytes in both directions.
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { BufferBudget } from '../tunnel-protocol/buffers/buffer-budget.ts'
import { ConnectionBuffers } from '../tunnel-protocol/buffers/connection-buffers.ts'
import { connectStreams } from '../tunnel-protocol/connect-streams.ts'
import { type ConnectProblem, problemResponse, recognizeOther } from '../tunnel-protocol/problems.ts'
import type { YamuxStream } from '../yamux/index.ts'
import { Dialer, type Target, toProblem } from './dialer.ts'

/** Limit for all connections together, in both directions. */
const BUFFERED_BYTES_MAX = 128 * 1024 * 1024
/** Interval between connection attempts to a server that cannot be reached. */
const CHECK_INTERVAL_MS = 1_000
/** How long a check waits for a server that sends the first bytes, such as SSH or SMTP. */
const GREETING_MS = 500
/** How long a server has to close a connection that a check ended. */
const END_TIMEOUT_MS = 1_000

/**
 * Reads what the streams of a tunnel carry, with listeners behind those that copy. A chunk is valid only
 * until the listener returns: its memory is freed once it is sent.
 */
export interface ConnectionObserver {
  /** The stream is connected to the local server. */
  onConnect(stream: Duplex, socket: Duplex): void
  /** The local server could not be reached: the request of the stream is discarded. */
  onProblem(stream: Duplex, problem: string): void
}

interface LocalServerOptions {
  readonly target: Target
  /** Whether a failed connection is reported to the edge as an HTTP response. */
  readonly isHttp: boolean
  /** Called for every failed connection. */
  onProblem?(problem: ConnectProblem, message: string): void
  /** Called for the first connection that succeeds after one failed. */
  onReachable?(): void
  /** Called if a check finds a server that sends something before it gets a request, as HTTP never does. */
  onGreeting?(problem: NonNullable<ReturnType<typeof recognizeOther>>): void
  readonly observer?: ConnectionObserver | undefined
}

/** Serves the streams of a tunnel. */
export interface StreamServer {
  serve(stream: YamuxStream): void
  /**
   * Checks whether the target can be reached. After this, every failure is followed by further checks until
   * it can be reached again.
   */
  check?(): void
  /** Memory of data that slow readers have not read yet. */
  readonly buffers?: BufferBudget
}

export class LocalServer implements StreamServer {
  /** Bounds the memory for slow readers at either end: beyond the limit, the slowest streams are reset. */
  readonly buffers = new BufferBudget(BUFFERED_BYTES_MAX)
  readonly #options: LocalServerOptions
  readonly #dialer: Dialer
  #checkTimer: NodeJS.Timeout | undefined
  #isWatched = false
  #hasProblem = false

  constructor(options: LocalServerOptions) {
    this.#options = options
    this.#dialer = new Dialer(options.target)
  }

  /** HTTP only: other servers may count a connection without data as an attack, or accept only one. */
  check(): void {
    if (!this.#options.isHttp) return
    this.#isWatched = true
    this.#dialer.dial({
      onConnect: (socket) => {
        socket.once('data', (chunk: Buffer) => {
          const other = recognizeOther(chunk.toString('latin1'))
          if (other) this.#options.onGreeting?.(other)
        })
        end(socket, GREETING_MS)
        this.#onReachable()
      },
      onError: (error) => this.#onProblem(error),
    })
  }

  /** Whether the server of a plain TCP target accepts TLS. */
  probeTls(): Promise<boolean> {
    const { target } = this.#options
    if ('path' in target || target.tls) return Promise.resolve(false)
    return new Promise((resolve) => {
      new Dialer({ ...target, tls: { isInsecure: true } }).dial({
        onConnect: (socket) => {
          end(socket, 0)
          resolve(true)
        },
        onError: () => resolve(false),
      })
    })
  }

  /**
   * Connects the stream to the server. If that fails, an HTTP stream gets an error response; others are
   * reset.
   */
  serve(stream: YamuxStream): void {
    const buffers = new ConnectionBuffers(this.buffers, performance.now())
    buffers.attach(stream)
    // The stream was reset, or its session ended. `close` follows.
    stream.on('error', () => undefined)
    stream.once('close', () => buffers.release())
    const cancel = this.#dialer.dial({
      onConnect: (socket) => {
        stream.off('close', cancel)
        this.#onReachable()
        connect(stream, socket, buffers)
        this.#observe((observer) => observer.onConnect(stream, socket))
      },
      onError: (error) => {
        stream.off('close', cancel)
        const problem = this.#onProblem(error)
        if (!this.#options.isHttp) return void stream.destroy(error)
        // The request is discarded.
        stream.resume()
        stream.end(problemResponse(problem))
        this.#observe((observer) => observer.onProblem(stream, error.message))
      },
    })
    stream.once('close', cancel)
  }

  /** An observer that fails must not affect the stream. */
  #observe(act: (observer: ConnectionObserver) => void): void {
    const { observer } = this.#options
    if (!observer) return
    try {
      act(observer)
    } catch {}
  }

  #onReachable(): void {
    if (!this.#hasProblem) return
    this.#hasProblem = false
    clearTimeout(this.#checkTimer)
    this.#options.onReachable?.()
  }

  #onProblem(error: Error): ConnectProblem {
    const problem = toProblem(error)
    this.#options.onProblem?.(problem, error.message)
    this.#hasProblem = true
    clearTimeout(this.#checkTimer)
    if (this.#isWatched) this.#checkTimer = setTimeout(() => this.check(), CHECK_INTERVAL_MS).unref()
    return problem
  }
}

/**
 * Ends a connection that carried no request after `afterMs`. Reads what the server sends, because a
 * connection that is closed with unread data is reset, and servers log that as an error.
 */
function end(socket: Socket, afterMs: number): void {
  const timers = [
    setTimeout(() => socket.end(), afterMs).unref(),
    setTimeout(() => socket.destroy(), afterMs + END_TIMEOUT_MS).unref(),
  ]
  socket.on('error', () => undefined)
  socket.once('end', () => socket.end())
  socket.once('close', () => timers.forEach(clearTimeout))
  socket.resume()
}

function connect(stream: YamuxStream, socket: Socket, buffers: ConnectionBuffers): void {
  buffers.connect({ readable: socket, writable: socket })
  connectStreams(
    stream,
    socket,
    (bytes) => buffers.transferredOut(bytes),
    (bytes) => buffers.transferredIn(bytes),
  )
}
