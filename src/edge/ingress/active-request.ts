// A request or connection in progress: the client that carries it, what it counts, and its event.
import type { IncomingMessage } from 'node:http'
import type { Duplex } from 'node:stream'
import type { EdgeInstruments, EvictionReason } from '../../lib/metrics/edge-instruments.ts'
import { clientNetwork } from '../../lib/net/client-limit.ts'
import { ConnectionBuffers, type Endpoint } from '../../tunnel-protocol/buffers/connection-buffers.ts'
import { reset } from '../../tunnel-protocol/connect-streams.ts'
import type { RequestProblem } from '../../tunnel-protocol/problems.ts'
import { type CauseCode, causes, type VisitorError } from '../error-responses/causes.ts'
import type { Traffic } from '../traffic.ts'
import type { SilenceDetector, WaitingRequest } from '../tunnels/silence-detector.ts'
import type { Tunnel } from '../tunnels/tunnel.ts'
import type { UpstreamClient } from '../tunnels/upstream-client.ts'

/** The tunnel client shows the path of a request; a longer path is cut. */
const PATH_CHARS_MAX = 2_000

/** Who sent the request or opened the connection. */
export interface Visitor extends Endpoint {
  /** Undefined if the address is not known. */
  readonly address: string | undefined
  /** Undefined for a connection to the port of a TCP tunnel. */
  readonly request: IncomingMessage | undefined
  readonly writable: Duplex
  /** Sends an error response, and closes the connection. */
  reject(error: VisitorError): void
}

/** What visitors get whose response has not begun. */
const EVICTION_CAUSES: Record<EvictionReason, CauseCode> = {
  capacity: 'request_too_slow',
  memory: 'out_of_memory',
  slow: 'request_timeout',
}

export interface ActiveRequestOptions {
  readonly tunnel: Tunnel<UpstreamClient>
  readonly visitor: Visitor
  readonly instruments: EdgeInstruments
  readonly traffic: Pick<Traffic, 'add' | 'delete'>
  /** An earlier attempt at this request failed, and was counted. */
  readonly isRetry?: boolean
  /** Whether another client could serve the request. */
  hasOther(tunnel: Tunnel<UpstreamClient>, client: UpstreamClient | undefined): boolean
  /** Called once. */
  onFinished(): void
}

export class ActiveRequest extends ConnectionBuffers implements WaitingRequest {
  readonly tunnel: Tunnel<UpstreamClient>
  tunnelPosition = -1
  workspacePosition = -1
  edgePosition = -1
  waitingPosition = -1
  readonly #options: ActiveRequestOptions
  readonly #startedAt: number
  readonly #network: string
  #client: UpstreamClient | undefined
  /** Until the response begins. */
  #silence: SilenceDetector | undefined
  #bytesIn = 0
  #bytesOut = 0
  /** Bytes in both directions at the last check of progress. */
  #checkedBytes: number | undefined
  /** Undefined until the response begins. */
  #status: number | undefined
  #problem: RequestProblem | undefined
  #isConnected = false
  #isFinished = false
  readonly #revision: number

  constructor(options: ActiveRequestOptions) {
    const { tunnel, visitor } = options
    const now = performance.now()
    super(tunnel.load.buffers, now)
    this.connect(visitor)
    this.#startedAt = now
    this.#options = options
    this.#network = clientNetwork(visitor.address)
    this.tunnel = tunnel
    this.#revision = tunnel.access.revision
    tunnel.requests.add(this)
    tunnel.load.requests.add(this)
    options.traffic.add(this)
  }

  /** The client that carries the request, or has carried it. */
  get client(): UpstreamClient | undefined {
    return this.#client
  }

  /** All unknown clients are one network. */
  override get network(): string {
    return this.#network
  }

  /** Picks the client that carries the request, and another one than `failed` if possible. */
  pickClient(failed?: UpstreamClient): UpstreamClient | undefined {
    const client = this.tunnel.pickClient(failed)
    if (client === this.#client) return client
    this.#stopWaiting()
    this.#client?.finish()
    client?.start()
    if (client && !this.#client && !this.#options.isRetry) this.tunnel.count(client, { requests: 1 })
    this.#client = client
    return client
  }

  /** Call this after the bytes were written, as with `countOut`. */
  countIn(bytesIn: number): void {
    this.#bytesIn += bytesIn
    if (this.#client) this.tunnel.count(this.#client, { bytesIn })
    this.transferredIn(bytesIn)
  }

  countOut(bytesOut: number): void {
    this.#bytesOut += bytesOut
    if (this.#client) this.tunnel.count(this.#client, { bytesOut })
    this.transferredOut(bytesOut)
  }

  /** Counts the response when it begins, once. The tunnel client gets an event when it is complete. */
  onResponse(status: number): void {
    if (this.#status !== undefined || this.#isFinished) return
    this.#status = status
    this.#stopWaiting()
    this.#options.instruments.tunneled.observe(status, performance.now() - this.#startedAt)
  }

  /** A connection without requests reaches the tunnel client, which gets an event when it is complete. */
  onConnected(): void {
    this.#isConnected = true
  }

  get isConnected(): boolean {
    return this.#isConnected
  }

  /** The local server is the reason why the request fails. */
  onProblem(problem: RequestProblem): void {
    this.#problem = problem
  }

  /** The request was sent, and is sent once more if its client turns out to be silent. */
  retryIfSilent(): void {
    if (this.#options.isRetry) return
    this.#silence = this.#client?.silence
    this.#silence?.add(this)
  }

  mayMove(): boolean {
    return this.#options.hasOther(this.tunnel, this.#client)
  }

  onSilent(): void {
    if (this.mayMove()) this.resetStream()
  }

  #stopWaiting(): void {
    this.#silence?.delete(this)
    this.#silence = undefined
  }

  #sendEvent(): void {
    const { request } = this.#options.visitor
    const transfer = {
      bytesIn: this.#bytesIn,
      bytesOut: this.#bytesOut,
      ms: roundMs(performance.now() - this.#startedAt),
    }
    if (this.#isConnected) this.#client?.send({ event: 'connection', ...transfer })
    else if (request && this.#status !== undefined) {
      const { method = '', url = '' } = request
      const path = url.slice(0, PATH_CHARS_MAX)
      this.#client?.send({
        ...{ event: 'request', method, path, status: this.#status, ...transfer },
        ...this.#problem,
      })
    }
  }

  /** False if less than `bytesMin` was transferred since the last check because the visitor is slow. */
  checkProgress(bytesMin: number): boolean {
    const bytes = this.#bytesIn + this.#bytesOut
    const before = this.#checkedBytes
    this.#checkedBytes = bytes
    return before === undefined || bytes - before >= bytesMin || !this.#isVisitorSlow()
  }

  /** The access rules have changed since the request was authorized. */
  get areRulesChanged(): boolean {
    return this.tunnel.access.revision !== this.#revision
  }

  /** Without a response yet, what the stream has received belongs to earlier requests. */
  retryIfReused(): void {
    if (this.#status === undefined && this.bytesReceived > 0) this.resetStream()
  }

  /** Ends the request. Its slot is free when this returns. */
  override evict(reason: EvictionReason = 'memory'): void {
    if (!this.#isFinished) {
      this.#options.instruments.evicted[reason] += 1
      this.#end({ cause: EVICTION_CAUSES[reason] })
      this.finish()
    }
    super.evict()
  }

  abort(error: VisitorError): void {
    this.#end(error)
    this.finish()
    super.evict()
  }

  /** The client of the request is not valid any more. */
  abortResponse(): void {
    const { request, writable } = this.#options.visitor
    // Without a response it may begin again at another client.
    if (request && this.#status === undefined) return void this.resetStream()
    reset(writable)
    this.finish()
    super.evict()
  }

  finish(): void {
    if (this.#isFinished) return
    this.#isFinished = true
    this.#stopWaiting()
    this.#sendEvent()
    this.#client?.finish()
    this.tunnel.requests.delete(this)
    this.tunnel.load.requests.delete(this)
    this.#options.traffic.delete(this)
    this.release()
    this.#options.onFinished()
  }

  #end(error: VisitorError): void {
    const { request, writable, reject } = this.#options.visitor
    if (!request || this.#status !== undefined) reset(writable)
    else {
      this.onResponse(causes[error.cause].status)
      reject(error)
    }
  }

  /** The rest of the request has not arrived, or the response is not read. */
  #isVisitorSlow(): boolean {
    const { request, writable } = this.#options.visitor
    if (writable.writableLength > 0) return true
    const isBodyAwaited = request && !request.complete && request.readableLength === 0 && !request.isPaused()
    return isBodyAwaited === true && this.#status === undefined
  }
}

const roundMs = (ms: number) => Math.round(ms * 10) / 10
