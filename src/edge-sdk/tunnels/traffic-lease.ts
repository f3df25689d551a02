// The lease for traffic: how long this edge may carry any without the control plane. A revocation does not
// wait for the edge once it has expired. Each sync renews it, after the edge has applied the changes that
// came before.
import { createLease, type Moment } from '../../lib/credentials/lease.ts'
import type { SyncResult } from '../api.ts'
import type { AppliedChanges } from '../keys/applied-changes.ts'

interface Renewal {
  /** Taken before the sync was sent. */
  readonly from: Moment
  readonly ms: number
  readonly after: string
}

interface TrafficLeaseOptions {
  readonly changes: Pick<AppliedChanges, 'has'>
  onExpired(): void
  onRenewed(): void
}

export class TrafficLease {
  readonly #options: TrafficLeaseOptions
  readonly #lease = createLease(Date.now)
  /** The first and the latest renewal whose changes are not applied yet. */
  #pending: Renewal[] = []
  #isHeld = false
  #isLimited = true
  #timer: NodeJS.Timeout | undefined

  constructor(options: TrafficLeaseOptions) {
    this.#options = options
  }

  /** False if the control plane lets edges carry traffic without it. */
  get isLimited(): boolean {
    return this.#isLimited
  }

  now(): Moment {
    return this.#lease.now()
  }

  /**
   * Whether the edge may carry traffic. A process that was stopped may call this before any timer has fired:
   * `onExpired` is called first.
   */
  isValid(): boolean {
    if (this.#lease.isValid()) return true
    if (this.#isHeld) this.#expire()
    return false
  }

  /** A sync had this response. */
  granted(from: Moment, lease: SyncResult['lease']): void {
    if (!lease) return
    const { seconds, after } = lease
    if (seconds === null) {
      this.#isLimited = false
      this.#pending = []
      this.#renew(from, Number.POSITIVE_INFINITY)
      return
    }
    if (!this.#isLimited) this.#lease.end()
    this.#isLimited = true
    this.#pending.splice(1, 1, { from, ms: seconds * 1_000, after })
    this.onApplied()
  }

  /** Call it when changes were applied. */
  onApplied(): void {
    for (
      let first = this.#pending[0];
      first && this.#options.changes.has(first.after);
      first = this.#pending[0]
    ) {
      this.#pending.shift()
      this.#renew(first.from, first.ms)
    }
  }

  stop(): void {
    clearTimeout(this.#timer)
  }

  #renew(from: Moment, ms: number): void {
    this.#lease.renew(from, ms)
    if (!this.#lease.isValid()) return
    const isNew = !this.#isHeld
    this.#isHeld = true
    this.#schedule()
    if (isNew) this.#options.onRenewed()
  }

  #schedule(): void {
    clearTimeout(this.#timer)
    const leftMs = this.#lease.leftMs()
    if (leftMs === Number.POSITIVE_INFINITY) return
    this.#timer = setTimeout(() => this.isValid() && this.#schedule(), Math.max(1, leftMs)).unref()
  }

  #expire(): void {
    this.#isHeld = false
    this.#lease.end()
    clearTimeout(this.#timer)
    this.#options.onExpired()
  }
}
