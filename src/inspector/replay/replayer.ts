// Sends a recorded request to the local server again, as it was or edited, and records the result.

import type { Socket } from 'node:net'
import type { ReplayRequest } from '../api.ts'
import { StreamParser } from '../recording/stream-parser.ts'
import type { RecordedExchange, RecordedTunnel } from '../store/exchange.ts'
import type { ExchangeStore } from '../store/exchange-store.ts'
import { findReplayProblem } from './problem.ts'
import { editedBytes, recordedBytes } from './request-bytes.ts'

const REPLAYS_MAX = 10
/** As long as an edge waits for a response, with some time for the body. */
const TIMEOUT_MS = 150_000

/** Why nothing was sent. The message is for the user. */
export class ReplayRejected extends Error {
  override name = 'ReplayRejected'
  readonly code: 'not_replayable' | 'too_many' | 'target_unreachable'

  constructor(code: ReplayRejected['code'], message: string) {
    super(message)
    this.code = code
  }
}

/** Opens a connection to the local server of a tunnel. */
type Dial = () => Promise<Socket>

export class Replayer {
  readonly #store: ExchangeStore
  readonly #timeoutMs: number
  readonly #dials = new Map<RecordedTunnel, Dial>()
  readonly #sockets = new Set<Socket>()
  #running = 0

  constructor(store: ExchangeStore, timeoutMs = TIMEOUT_MS) {
    this.#store = store
    this.#timeoutMs = timeoutMs
  }

  addTarget(tunnel: RecordedTunnel, dial: Dial): void {
    this.#dials.set(tunnel, dial)
  }

  /** Resolves with the new exchange as soon as the request is on its way. */
  async replay(exchange: RecordedExchange, edit: ReplayRequest): Promise<RecordedExchange> {
    const isEdited = Object.keys(edit).length > 0
    const problem = findReplayProblem(exchange, isEdited)
    if (problem !== undefined) throw new ReplayRejected('not_replayable', problem)
    const bytes = isEdited ? editedBytes(exchange, edit) : recordedBytes(exchange)
    const dial = this.#dials.get(exchange.tunnel)
    if (!dial) throw new Error('The tunnel of the exchange has no target.')
    if (this.#running >= REPLAYS_MAX)
      throw new ReplayRejected('too_many', `${REPLAYS_MAX} replays are in progress. Wait for one of them.`)
    const socket = await this.#connect(exchange.tunnel, dial)
    try {
      return this.#send(socket, exchange, bytes, isEdited)
    } catch (error) {
      socket.destroy()
      throw error
    }
  }

  close(): void {
    for (const socket of this.#sockets) socket.destroy()
  }

  /** The replay counts as running until the socket is closed. */
  async #connect({ target }: RecordedTunnel, dial: Dial): Promise<Socket> {
    this.#running += 1
    const socket = await dial().catch((error: Error) => {
      this.#running -= 1
      throw new ReplayRejected(
        'target_unreachable',
        `The local server at ${target} cannot be reached: ${error.message}.`,
      )
    })
    this.#sockets.add(socket)
    socket.on('error', () => undefined)
    socket.once('close', () => {
      this.#running -= 1
      this.#sockets.delete(socket)
    })
    return socket
  }

  #send(socket: Socket, exchange: RecordedExchange, bytes: Buffer, isEdited: boolean): RecordedExchange {
    const parser = new StreamParser(this.#store, exchange.tunnel, { replayOf: exchange.id, edited: isEdited })
    parser.fromVisitor(bytes, performance.now())
    const { exchange: replayed } = parser
    if (!replayed) throw new Error('The replayed request was not recorded.')
    let problem: string | undefined
    const timer = setTimeout(() => {
      problem = this.#describeTimeout(replayed)
      socket.destroy()
    }, this.#timeoutMs)
    const closeIfComplete = () => {
      if (replayed.state !== 'pending') socket.destroy()
    }
    socket.on('data', (received: Buffer) => {
      parser.fromServer(received, performance.now())
      closeIfComplete()
    })
    socket.once('end', () => {
      parser.serverEnded(performance.now())
      socket.end()
    })
    socket.once('close', () => {
      clearTimeout(timer)
      parser.closed(performance.now(), problem)
    })
    socket.write(bytes)
    return replayed
  }

  #describeTimeout({ response, tunnel }: RecordedExchange): string {
    const missing = response ? 'complete its response' : 'respond'
    return (
      `The local server at ${tunnel.target} did not ${missing} within ${this.#timeoutMs / 1000} s. ` +
      'Check what it waits for, such as a breakpoint or another server, and replay the request again.'
    )
  }
}
