// Connections to the edge. The requests of one connection are handled one at a time, in their order; each gets at most one
// response, and what is not a request is refused after the requests before it.
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { Socket } from 'node:net'
import type { Duplex } from 'node:stream'
import { hasBody } from '../proxy.ts'
import { closeGracefully, sendError, sendRawError } from '../responses.ts'
import { type ClientAddresses, ClientLimit } from './client-address.ts'

/** One request is handled and the others wait; more close the connection. */
const REQUESTS_MAX = 32
/** What those that wait may have sent, headers and bodies. */
const WAITING_BYTES_MAX = 256 * 1024
const CONNECTIONS_OF_CLIENT = { max: 500, maxOf48: 2_000 }
/** A body must bring this much in each interval until the response begins. */
const BODY_BYTES_MIN = 1_024
const BODY_INTERVAL_MS = 30_000
/** A client that neither sends the rest of its request nor reads its response for so long is gone. */
const STALL_TIMEOUT_MS = 60_000

export interface GuardOptions {
  readonly clients: ClientAddresses
  onRequest(request: IncomingMessage, response: ServerResponse): void
  onUpgrade(request: IncomingMessage, connection: Connection, early: Buffer): void
}

export interface Guard {
  /** How many connections have requests that are not answered yet. */
  busy(): number
}

export function guardConnections(server: Server, { clients, onRequest, onUpgrade }: GuardOptions): Guard {
  const connections = new Map<Duplex, Connection>()
  const perClient = new ClientLimit(CONNECTIONS_OF_CLIENT)

  server.on('connection', (socket: Socket) => {
    const release = perClient.acquire(clients.ofPeer(socket.remoteAddress))
    if (!release) {
      socket.destroy()
      return
    }
    connections.set(socket, new Connection(socket, release))
    socket.once('close', () => connections.delete(socket))
  })
  // Each connection has its own listener; without one here the server would close whatever is silent.
  server.setTimeout(STALL_TIMEOUT_MS, () => {})

  const enqueue = (request: IncomingMessage, response: ServerResponse) =>
    connections.get(request.socket)?.add({ request, response, run: () => onRequest(request, response) })
  server.on('request', enqueue)
  // Unknown expectations are ignored.
  server.on('checkExpectation', enqueue)
  server.on('upgrade', (request, _stream, early) => {
    const connection = connections.get(request.socket)
    connection?.add({ run: () => onUpgrade(request, connection, early) })
  })
  server.on('connect', (request, stream) => {
    // Where a body follows, this is not always the socket.
    stream.on('error', () => {})
    connections.get(request.socket)?.refuse(405, 'This is not a proxy: CONNECT is not supported.')
  })
  server.on('clientError', (error: Error & { code?: string }, socket) => {
    const connection = connections.get(socket)
    // Where nothing was sent yet, a response could be taken for that to a request which is on its way.
    if (error.code === 'ECONNRESET' || (socket as Socket).bytesRead === 0) socket.destroy()
    else connection?.refuse(...explain(error.code))
  })
  return { busy: () => [...connections.values()].filter(({ isBusy }) => isBusy).length }
}

function explain(code: string | undefined): [status: number, message: string] {
  if (code === 'HPE_HEADER_OVERFLOW') return [431, 'The request headers are too large.']
  if (code === 'ERR_HTTP_REQUEST_TIMEOUT') return [408, 'The request headers did not arrive in time.']
  return [400, 'Malformed HTTP request.']
}

/** More of the body is to come from the client. With a part of it unread, it is the local server that is slow. */
const isAwaited = ({ complete, readableLength }: IncomingMessage) => !complete && readableLength === 0

interface Turn {
  readonly request?: IncomingMessage
  readonly response?: ServerResponse
  /** How many bytes the connection had received. */
  readonly receivedAt?: number
  run(): void
}

export class Connection {
  readonly socket: Socket
  readonly #turns: Turn[] = []
  readonly #release: () => void
  #latest: IncomingMessage | undefined
  #isRefused = false
  #isCounted = true

  constructor(socket: Socket, release: () => void) {
    this.socket = socket
    this.#release = release
    // From the start: the server takes its own listeners away when a request asks for an upgrade or CONNECT.
    socket.on('error', () => {})
    // Node calls this after the last response, while the client may still be sending its request.
    socket.destroySoon = () => closeGracefully(socket)
    socket.on('drain', () => this.#turns[0]?.response?.emit('drain'))
    socket.on('timeout', () => this.#onTimeout())
    socket.once('close', () => {
      this.#turns.length = 0
      this.uncount()
    })
  }

  get isBusy(): boolean {
    return this.#turns[0]?.response !== undefined
  }

  /** For a connection that becomes part of a tunnel, and no longer counts against its client. */
  uncount(): void {
    if (this.#isCounted) this.#release()
    this.#isCounted = false
  }

  add(turn: Turn): void {
    if (this.#isRefused || this.socket.destroyed) return
    this.#latest = turn.request ?? this.#latest
    const { bytesRead } = this.socket
    this.#turns.push({ ...turn, receivedAt: bytesRead })
    const waitingSince = this.#turns[1]?.receivedAt ?? bytesRead
    if (this.#turns.length === 1) this.#runNext()
    else if (this.#turns.length > REQUESTS_MAX || bytesRead - waitingSince > WAITING_BYTES_MAX)
      this.socket.destroy()
  }

  /** Answers what cannot be handled, after the requests before it, and closes the connection. */
  refuse(status: number, message: string): void {
    if (this.#isRefused) return
    this.#isRefused = true
    const refusal = { run: () => sendRawError(this.socket, status, message) }
    const last = this.#turns.at(-1)
    if (this.#latest === undefined || this.#latest.complete) {
      this.#turns.push(refusal)
      if (this.#turns.length === 1) this.#runNext()
    } else if (last && last.request === this.#latest && this.#turns.length > 1)
      this.#turns.splice(-1, 1, refusal)
    else if (last?.request === this.#latest && last.response && !last.response.headersSent) {
      last.response.shouldKeepAlive = false
      sendError(last.response, status, message)
    }
    // The request has its response already: another one would be taken for that to the next request.
    else closeGracefully(this.socket)
  }

  #runNext(): void {
    const [turn] = this.#turns
    if (!turn) return
    if (!this.socket.writable) {
      this.#turns.length = 0
      return
    }
    const timer = this.#watchBody(turn)
    turn.response?.once('close', () => {
      clearInterval(timer)
      this.#turns.shift()
      this.#runNext()
    })
    turn.run()
  }

  #watchBody({ request, response }: Turn): NodeJS.Timeout | undefined {
    if (!request || !response || !hasBody(request)) return undefined
    let { bytesRead } = this.socket
    return setInterval(() => {
      const received = this.socket.bytesRead - bytesRead
      bytesRead += received
      if (received < BODY_BYTES_MIN && !response.headersSent && isAwaited(request))
        this.refuse(408, 'The request body did not arrive in time.')
    }, BODY_INTERVAL_MS)
  }

  #onTimeout(): void {
    const [turn] = this.#turns
    if (!turn || this.socket.writableLength > 0) this.socket.destroy()
    else if (turn.request && isAwaited(turn.request)) closeGracefully(this.socket)
    else this.socket.setTimeout(STALL_TIMEOUT_MS)
  }
}
