// Detects within a second that a client is silent: that it does not respond. It is probed only while requests
// wait that another client could serve. Until it responds again, new requests go to other clients, and
// waiting ones are retried once at another client. Its connection stays open until the session times out,
// much later, so a false alarm on a busy machine only costs retries.
import { DenseSet } from '../../lib/collections/dense-set.ts'

/** Interval of checks while requests wait. A check probes the client unless a probe is pending. */
const CHECK_INTERVAL_MS = 200
/** Bounds of the probe timeout, which is twice the time that the last response took. */
const PROBE_TIMEOUT_MIN_MS = 300
export const PROBE_TIMEOUT_MAX_MS = 500

/** A request without a response, which may be sent to another client. */
export interface WaitingRequest {
  /** Its position among the waiting requests. */
  waitingPosition: number
  /** Whether there is another client. */
  mayMove(): boolean
  /** Sends the request to another client, if there is one. */
  onSilent(): void
}

export class SilenceDetector {
  readonly #probe: () => Promise<void>
  readonly #waiting = new DenseSet<'waitingPosition', WaitingRequest>('waitingPosition')
  #timer: NodeJS.Timeout | undefined
  /** When the pending probe was sent; undefined if there is none. */
  #probedAt: number | undefined
  /** How long the response to the last probe took. */
  #responseMs = 0
  #isSilent = false

  /** `probe` resolves when the client responds. */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  get isSilent(): boolean {
    return this.#isSilent
  }

  add(request: WaitingRequest): void {
    this.#waiting.add(request)
    if (this.#timer === undefined) this.#checkIn(CHECK_INTERVAL_MS)
  }

  delete(request: WaitingRequest): void {
    this.#waiting.delete(request)
  }

  #checkIn(ms: number): void {
    clearTimeout(this.#timer)
    this.#timer = setTimeout(() => this.#check(), ms).unref()
  }

  #check(): void {
    this.#timer = undefined
    if (this.#waiting.size === 0) return
    this.#checkIn(CHECK_INTERVAL_MS)
    if (this.#probedAt === undefined) this.#sendProbe()
    // If this process was suspended or busy, the response may have arrived and is read first.
    else if (performance.now() - this.#probedAt >= this.#timeoutMs()) setImmediate(() => this.#onTimeout())
  }

  #timeoutMs(): number {
    return Math.min(Math.max(PROBE_TIMEOUT_MIN_MS, 2 * this.#responseMs), PROBE_TIMEOUT_MAX_MS)
  }

  #sendProbe(): void {
    if (![...this.#waiting].some((request) => request.mayMove())) return
    const sentAt = performance.now()
    this.#probedAt = sentAt
    this.#checkIn(this.#timeoutMs())
    const onResponse = () => {
      this.#probedAt = undefined
      this.#isSilent = false
      this.#responseMs = performance.now() - sentAt
      if (this.#timer !== undefined) this.#checkIn(CHECK_INTERVAL_MS)
    }
    // Rejects if the session is closed, and then its requests fail, too.
    this.#probe().then(onResponse, () => {})
  }

  #onTimeout(): void {
    if (this.#probedAt === undefined) return
    this.#isSilent = true
    for (const request of this.#waiting) request.onSilent()
  }
}
