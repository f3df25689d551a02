// Records the exchanges of tunnels from copies of the bytes that their streams carry. Bytes are copied after
// they were passed on, and parsed later in short turns, so that a stream never waits for the recorder. If
// more bytes wait than fit, a stream goes on without being recorded.
import type { Duplex } from 'node:stream'
import type { ConnectionObserver } from '../../tunnel-client/local-server.ts'
import type { RecordedTunnel } from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { StreamParser } from './stream-parser.ts'

/** Copies that are not parsed yet, of all streams. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024
/** Objects of a copy, so that many small ones count. */
const COPY_OVERHEAD_BYTES = 128
/** How long to parse before streams get their turn. */
const TURN_MS = 4
/** Positions of what is done are kept up to this number. */
const DONE_MAX = 1_024
const TOO_SLOW = 'The recorder had too much to parse. The request was not affected.'

interface Work {
  readonly bytes: number
  run(): void
}

export class Recorder {
  readonly store: ExchangeStore
  #waiting: (Work | undefined)[] = []
  /** The position of the first that is not done. */
  #next = 0
  #waitingBytes = 0
  #isScheduled = false

  constructor(store: ExchangeStore) {
    this.store = store
  }

  /** For the connections of one tunnel. */
  observer(tunnel: RecordedTunnel): ConnectionObserver {
    return {
      onConnect: (stream, socket) => this.#record(tunnel, stream, socket),
      onProblem: (stream, problem) => this.#record(tunnel, stream, undefined, problem),
    }
  }

  #record(tunnel: RecordedTunnel, stream: Duplex, socket: Duplex | undefined, problem?: string): void {
    const parser = new StreamParser(this.store, tunnel)
    let isLost = false
    const add = (bytes: number, parse: (now: number) => void) => {
      if (isLost) return
      const now = performance.now()
      if (this.#add({ bytes: bytes + COPY_OVERHEAD_BYTES, run: () => parse(now) })) return
      isLost = true
      this.#add({ bytes: 0, run: () => parser.fail(TOO_SLOW) })
    }
    const copy = (parse: (received: Buffer, now: number) => void) => (received: Buffer) => {
      if (isLost) return
      try {
        const bytes = Buffer.from(received)
        add(bytes.length, (now) => parse(bytes, now))
      } catch {
        // No memory for the copy.
        isLost = true
      }
    }
    stream.on(
      'data',
      copy((received, now) => parser.fromVisitor(received, now)),
    )
    socket?.on(
      'data',
      copy((received, now) => parser.fromServer(received, now)),
    )
    socket?.once('end', () => add(0, (now) => parser.serverEnded(now)))
    stream.once('close', () =>
      add(0, (now) => (problem === undefined ? parser.closed(now) : parser.unreachable(problem, now))),
    )
  }

  /** False if there is no room. */
  #add(work: Work): boolean {
    if (work.bytes > 0 && this.#waitingBytes + work.bytes > WAITING_BYTES_MAX) return false
    this.#waitingBytes += work.bytes
    this.#waiting.push(work)
    this.#schedule()
    return true
  }

  #schedule(): void {
    if (this.#isScheduled || this.#next === this.#waiting.length) return
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      this.#parse()
      this.#schedule()
    })
  }

  #parse(): void {
    const endMs = performance.now() + TURN_MS
    while (this.#next < this.#waiting.length) {
      const work = this.#waiting[this.#next] as Work
      this.#waiting[this.#next] = undefined
      this.#next += 1
      this.#waitingBytes -= work.bytes
      try {
        work.run()
      } catch {
        // Parsers report their problems in the exchange; anything else must not end the tunnel.
      }
      if (performance.now() > endMs) break
    }
    if (this.#next < this.#waiting.length && this.#next < DONE_MAX) return
    this.#waiting = this.#waiting.slice(this.#next)
    this.#next = 0
  }
}
