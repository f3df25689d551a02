// Pings of a session: they measure the round-trip time, by which windows grow, and detect a dead peer.
import { ACK, SYN, TYPE_PING, UINT32_MAX } from './frame.ts'
import type { Sender } from './sender.ts'

const PENDING_MAX = 16
/** An older round-trip time is measured again when a window is updated. */
const RTT_MAX_AGE_MS = 10_000
/** Receiving this many bytes counts as the response to a probe. */
const PROBE_BYTES = 32 * 1024

export interface KeepAlive {
  readonly intervalMs: number
  readonly timeoutMs: number
}

export class Pings {
  readonly #sender: Sender
  readonly #pending = new Map<number, PromiseWithResolvers<number> & { sentAt: number }>()
  #nextId = 0
  #rttMs: number | undefined
  #measuredAt = 0
  #probe: (PromiseWithResolvers<void> & { receivedBytes: number }) | undefined
  /** Pending until the peer responds, also if the probe was resolved before. */
  #probePing: Promise<void> | undefined
  #isActive = false
  #timer: NodeJS.Timeout | undefined

  constructor(sender: Sender) {
    this.#sender = sender
    this.#measure()
  }

  /** Falls at once and rises slowly: a ping delayed by a queue must not make windows grow. */
  rttMs(): number | undefined {
    if (performance.now() - this.#measuredAt > RTT_MAX_AGE_MS) this.#measure()
    return this.#rttMs
  }

  ping(): Promise<number> {
    if (this.#pending.size >= PENDING_MAX)
      return Promise.reject(new Error(`${PENDING_MAX} pings have no response yet.`))
    const pending = { sentAt: performance.now(), ...Promise.withResolvers<number>() }
    const id = this.#nextId
    this.#nextId = id === UINT32_MAX ? 0 : id + 1
    this.#pending.set(id, pending)
    this.#sender.control(TYPE_PING, SYN, 0, id)
    return pending.promise
  }

  /**
   * Resolves when the peer responds to a ping, or has sent so much that its response may be queued behind it.
   * Fewer bytes prove nothing: they may have been on their way before the peer stopped receiving.
   */
  probe(): Promise<void> {
    this.#probe ??= { receivedBytes: 0, ...Promise.withResolvers<void>() }
    const { promise } = this.#probe
    this.#probePing ??= this.ping()
      .then(
        () => this.#probe?.resolve(),
        (error) => this.#probe?.reject(error),
      )
      .finally(() => {
        this.#probe = undefined
        this.#probePing = undefined
      })
    return promise
  }

  onPing(flags: number, id: number): void {
    if (flags === SYN) this.#sender.control(TYPE_PING, ACK, 0, id)
    else this.#onResponse(id)
  }

  #onResponse(id: number): void {
    const pending = this.#pending.get(id)
    if (!pending) return
    this.#pending.delete(id)
    const ms = performance.now() - pending.sentAt
    this.#rttMs = this.#rttMs === undefined ? ms : Math.min(ms, this.#rttMs + (ms - this.#rttMs) / 8)
    pending.resolve(ms)
  }

  /**
   * Pings when nothing was received for an interval; anything that is received shows that the peer is alive.
   */
  keepAlive(options: KeepAlive, onTimeout: () => void): void {
    const restart = () => {
      clearTimeout(this.#timer)
      this.#isActive = false
      this.#timer = setTimeout(() => (this.#isActive ? restart() : check()), options.intervalMs).unref()
    }
    const check = () => {
      this.#timer = setTimeout(() => (this.#isActive ? restart() : onTimeout()), options.timeoutMs).unref()
      this.ping().then(restart, () => {})
    }
    restart()
  }

  onReceived(bytes: number): void {
    this.#isActive = true
    if (!this.#probe) return
    this.#probe.receivedBytes += bytes
    if (this.#probe.receivedBytes < PROBE_BYTES) return
    this.#probe.resolve()
    this.#probe = undefined
  }

  close(error: Error): void {
    clearTimeout(this.#timer)
    for (const { reject } of this.#pending.values()) reject(error)
    this.#pending.clear()
  }

  #measure(): void {
    this.#measuredAt = performance.now()
    this.ping().catch(() => {})
  }
}
