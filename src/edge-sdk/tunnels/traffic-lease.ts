// The lease for traffic: how long this edge may carry any without the control plane. A revocation does not
// wait for the edge once it has expired. Each sync renews it, after the edge has applied the changes that
// came before.
import type { Moment } from '../../lib/credentials/lease.ts'
import { WatchedLease } from '../../lib/credentials/watched-lease.ts'
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
  readonly #changes: TrafficLeaseOptions['changes']
  readonly #lease: WatchedLease
  /** The first and the latest renewal whose changes are not applied yet. */
  #pending: Renewal[] = []
  #isLimited = true

  constructor({ changes, ...callbacks }: TrafficLeaseOptions) {
    this.#changes = changes
    this.#lease = new WatchedLease(callbacks)
  }

  /** False if the control plane lets edges carry traffic without it. */
  get isLimited(): boolean {
    return this.#isLimited
  }

  now(): Moment {
    return this.#lease.now()
  }

  /** Whether the edge may carry traffic. `onExpired` is called before this returns false. */
  isValid(): boolean {
    return this.#lease.isValid()
  }

  /** Until when the edge may carry traffic; undefined if it may not. */
  until(): Moment | undefined {
    return this.isValid() ? this.#lease.until : undefined
  }

  /** A sync had this response. */
  granted(from: Moment, lease: SyncResult['lease']): void {
    if (!lease) return
    const { seconds, after } = lease
    if (seconds === null) {
      this.#isLimited = false
      this.#pending = []
      this.#lease.renew(from, Number.POSITIVE_INFINITY)
      return
    }
    if (!this.#isLimited) this.#lease.end()
    this.#isLimited = true
    this.#pending.splice(1, 1, { from, ms: seconds * 1_000, after })
    this.onApplied()
  }

  /** Call it when changes were applied. */
  onApplied(): void {
    for (let first = this.#pending[0]; first && this.#changes.has(first.after); first = this.#pending[0]) {
      this.#pending.shift()
      this.#lease.renew(first.from, first.ms)
    }
  }

  stop(): void {
    this.#lease.stop()
  }
}
