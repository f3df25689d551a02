// Records the exchanges of tunnels from copies of the bytes that their streams carry. Bytes are copied after
// they were passed on, and parsed later in small parts and short turns, with longer pauses for the streams
// between them. If more bytes wait than fit, a stream goes on without being recorded.
import type { Duplex } from 'node:stream'
import type { ConnectionObserver } from '../../tunnel-client/local-server.ts'
import type { RecordedTunnel } from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { StreamParser } from './stream-parser.ts'

/** Copies that are not parsed yet, of all streams. */
const WAITING_BYTES_MAX = 16 * 1024 * 1024
/** Estimated memory of a copy besides its bytes, so that many small ones are limited, too. */
const COPY_OVERHEAD_BYTES = 128
/** How long to parse before streams get their turn. */
const TURN_MS = 4
/** A pause is this many times as long as the turn before it: the recorder has a quarter of the time. */
const PAUSE_FACTOR = 3
/** Done work is removed from the array when it is this much, because each removal copies the rest. */
const DONE_MAX = 1_024
const TOO_SLOW = 'The recorder had too much to parse. The request was not affected.'

interface Work {
  readonly bytes: number
  /** Parses a part. Returns whether it was the last one. */
  run(): boolean
}

interface RecorderClock {
  now(): number
  schedule(turn: () => void, afterMs: number): void
}

const CLOCK: RecorderClock = {
  now: () => performance.now(),
  schedule: (turn, afterMs) => void setTimeout(turn, afterMs),
}

export class Recorder {
  readonly store: ExchangeStore
  readonly #clock: RecorderClock
  #waiting: (Work | undefined)[] = []
  /** The index in `#waiting` of the first work that is not done. */
  #next = 0
  #waitingBytes = 0
  #isScheduled = false
  #nextTurnMs = 0

  constructor(store: ExchangeStore, clock = CLOCK) {
    this.store = store
    this.#clock = clock
  }

  /** For the connections of one tunnel. */
  observer(tunnel: RecordedTunnel): ConnectionObserver {
    return {
      onConnect: (stream, socket) => this.#record(tunnel, stream, socket),
      onProblem: (stream, problem) =>
        this.#record(tunnel, stream, undefined, `No connection to the local server: ${problem}.`),
    }
  }

  #record(tunnel: RecordedTunnel, stream: Duplex, socket: Duplex | undefined, problem?: string): void {
    const parser = new StreamParser(this.store, tunnel)
    let isLost = false
    const lose = () => {
      isLost = true
      this.#add({ bytes: 0, run: once(() => parser.fail(TOO_SLOW)) })
    }
    const add = (bytes: number, run: () => boolean) => {
      if (!isLost && !this.#add({ bytes: bytes + COPY_OVERHEAD_BYTES, run })) lose()
    }
    const addOnce = (parse: (now: number) => void) => {
      const now = this.#clock.now()
      add(
        0,
        once(() => parse(now)),
      )
    }
    const copy = (parse: (received: Buffer, now: number) => void) => (received: Buffer) => {
      if (isLost) return
      try {
        const bytes = Buffer.from(received)
        const now = this.#clock.now()
        add(
          bytes.length,
          inParts(bytes, parser, (part) => parse(part, now)),
        )
      } catch {
        // No memory for the copy.
        lose()
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
    socket?.once('end', () => addOnce((now) => parser.serverEnded(now)))
    stream.once('close', () => addOnce((now) => parser.closed(now, problem)))
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
    const afterMs = Math.max(0, this.#nextTurnMs - this.#clock.now())
    this.#clock.schedule(() => this.#takeTurn(), afterMs)
  }

  #takeTurn(): void {
    const startMs = this.#clock.now()
    let tookMs = 0
    while (this.#next < this.#waiting.length && tookMs < TURN_MS) {
      this.#parsePart()
      tookMs = this.#clock.now() - startMs
    }
    if (this.#next === this.#waiting.length || this.#next >= DONE_MAX) {
      this.#waiting = this.#waiting.slice(this.#next)
      this.#next = 0
    }
    this.#nextTurnMs = startMs + (1 + PAUSE_FACTOR) * tookMs
    this.#isScheduled = false
    this.#schedule()
  }

  #parsePart(): void {
    const work = this.#waiting[this.#next] as Work
    try {
      if (!work.run()) return
    } catch {
      // Parsers report their problems in the exchange; anything else must not end the tunnel.
    }
    this.#waiting[this.#next] = undefined
    this.#next += 1
    this.#waitingBytes -= work.bytes
  }
}

function once(act: () => void): Work['run'] {
  return () => {
    act()
    return true
  }
}

function inParts(bytes: Buffer, parser: StreamParser, parse: (part: Buffer) => void): Work['run'] {
  let at = 0
  return () => {
    const part = bytes.subarray(at, at + parser.partBytes)
    at += part.length
    parse(part)
    return at === bytes.length
  }
}
