// Finds out within a second that a client does not respond any more, while requests wait for it that another
// client could serve. Until it responds, it is silent: new requests go to others, and those that wait are
// sent there once more. Its connection is only closed after the much longer timeout of the session, so a busy
// machine costs a second try and nothing else.

/** How long a request waits before the client is probed, and then for the response to the probe. */
export const SILENT_AFTER_MS = 300
/** A client that is far away may take twice as long as it did the last time, up to this. */
const RESPONSE_MAX_MS = 1_000

/** A request without a response, which may be sent to another client. */
export interface WaitingRequest {
  /** Whether there is another client. */
  mayMove(): boolean
  /** Sends the request to another client, if there is one. */
  onSilent(): void
}

export class SilenceDetector {
  readonly #probe: () => Promise<void>
  readonly #waiting = new Set<WaitingRequest>()
  #timer: NodeJS.Timeout | undefined
  /** When the probe was sent that has no response. */
  #probedAt: number | undefined
  /** How long the last response took. */
  #responseMs = 0
  #isSilent = false

  /** `probe` asks for a sign of life. */
  constructor(probe: () => Promise<void>) {
    this.#probe = probe
  }

  get isSilent(): boolean {
    return this.#isSilent
  }

  add(request: WaitingRequest): void {
    this.#waiting.add(request)
    this.#timer ??= setTimeout(() => this.#check(), SILENT_AFTER_MS).unref()
  }

  delete(request: WaitingRequest): void {
    this.#waiting.delete(request)
  }

  #check(): void {
    this.#timer = undefined
    if (this.#waiting.size === 0) return
    if (this.#probedAt === undefined) this.#sendProbe()
    // If this process was suspended or busy, the response may have arrived, and is read before an immediate.
    else if (performance.now() - this.#probedAt >= this.#timeoutMs()) setImmediate(() => this.#onTimeout())
    this.#timer = setTimeout(() => this.#check(), SILENT_AFTER_MS).unref()
  }

  #timeoutMs(): number {
    return Math.min(Math.max(SILENT_AFTER_MS, 2 * this.#responseMs), RESPONSE_MAX_MS)
  }

  #sendProbe(): void {
    if (!this.#waiting.values().some((request) => request.mayMove())) return
    const sentAt = performance.now()
    this.#probedAt = sentAt
    const onResponse = () => {
      this.#probedAt = undefined
      this.#isSilent = false
      this.#responseMs = performance.now() - sentAt
    }
    // If the session is closed, its requests fail.
    this.#probe().then(onResponse, () => {})
  }

  #onTimeout(): void {
    if (this.#probedAt === undefined) return
    this.#isSilent = true
    for (const request of [...this.#waiting]) request.onSilent()
  }
}
