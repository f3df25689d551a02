// A request or connection in progress: the client that carries it, what it counts, and its event.
import type { IncomingMessage } from 'node:http'
import type { OperationDurations } from '../../metrics/request-durations.ts'
import type { Tunnel } from './tunnel.ts'
import type { TunnelClient } from './tunnel-client.ts'

/** Paths are shown by the tunnel client; longer ones are cut. */
const PATH_CHARS_MAX = 2_000

export class ActiveRequest {
  readonly tunnel: Tunnel
  readonly #durations: OperationDurations
  readonly #release: () => void
  readonly #startedAt = performance.now()
  #client: TunnelClient | undefined
  #bytesIn = 0
  #bytesOut = 0
  #isReported = false

  constructor(tunnel: Tunnel, durations: OperationDurations, release: () => void) {
    this.tunnel = tunnel
    this.#durations = durations
    this.#release = release
  }

  /** The client that carries it; another one if `failed` did not. */
  pickClient(failed?: TunnelClient): TunnelClient | undefined {
    const client = this.tunnel.pickClient(failed)
    if (client === this.#client) return client
    this.#client?.finish()
    client?.start()
    if (client && !this.#client) this.tunnel.count(client, { requests: 1 })
    this.#client = client
    return client
  }

  countIn(bytesIn: number): void {
    this.#bytesIn += bytesIn
    if (this.#client) this.tunnel.count(this.#client, { bytesIn })
  }

  countOut(bytesOut: number): void {
    this.#bytesOut += bytesOut
    if (this.#client) this.tunnel.count(this.#client, { bytesOut })
  }

  /** Sends the request event to the tunnel client and counts the response, once. */
  reportRequest({ method = '', url = '' }: IncomingMessage, status: number): void {
    if (this.#isReported) return
    this.#isReported = true
    const ms = performance.now() - this.#startedAt
    this.#durations.observe(status, ms)
    this.#client?.send({
      event: 'request',
      method,
      path: url.slice(0, PATH_CHARS_MAX),
      status,
      ms: rounded(ms),
    })
  }

  reportConnection(): void {
    const { bytesIn, bytesOut } = { bytesIn: this.#bytesIn, bytesOut: this.#bytesOut }
    const ms = rounded(performance.now() - this.#startedAt)
    this.#client?.send({ event: 'connection', bytesIn, bytesOut, ms })
  }

  finish(): void {
    this.#client?.finish()
    this.#release()
  }
}

const rounded = (ms: number) => Math.round(ms * 10) / 10
