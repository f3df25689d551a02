// The position up to which this edge has applied the stream of changes: whatever a change ends has ended. The
// edge acknowledges it, and the control plane then does not wait for the edge any more.
import { setTimeout as sleep } from 'node:timers/promises'
import { BoundedMap } from '../../lib/collections/bounded-map.ts'
import { warn } from '../safe-callback.ts'

/** The position before the first change. */
const START = '0'
/** A sync takes seconds at most. This many changes between it and its lease are recognized. */
const IDS_MAX = 10_000
const RETRY_MS = 1_000

interface Point {
  /** Id of the last change that was received. */
  readonly id: string
  readonly count: number
}

export class AppliedChanges {
  readonly #verifyKeys: () => unknown
  /** Ids that were received, with their order. */
  readonly #counts = new BoundedMap<string, number>(IDS_MAX)
  #received: Point = { id: START, count: 0 }
  /** What was received before changes that are still being applied, the earliest first. */
  readonly #holds = new Set<Point>()
  /** Set while keys have to be verified because of a change that was missed. */
  #requested: { readonly count: number; readonly release: () => void } | undefined
  #isVerifying = false
  #verifications = 0
  #isUrgent = false
  /** Called when the position has advanced. It is urgent if revocations may be waiting for this edge. */
  onAdvanced: (isUrgent: boolean) => void = () => undefined

  /** `verifyKeys` verifies all keys in use, with verifications that take `latestId` into account. */
  constructor(verifyKeys: () => unknown) {
    this.#verifyKeys = verifyKeys
  }

  /** Id of the last change that is applied, as are all before it. */
  get position(): string {
    return this.#applied().id
  }

  /** Id of the last change that was received; undefined before the first. */
  get latestId(): string | undefined {
    return this.#received.count === 0 ? undefined : this.#received.id
  }

  /** Grows when changes were missed: a verification that began before may be out of date. */
  get verifications(): number {
    return this.#verifications
  }

  /** False also if the change is not known: it may be of a log that was rolled back. */
  has(id: string): boolean {
    return (this.#counts.get(id) ?? Number.POSITIVE_INFINITY) <= this.#applied().count
  }

  /** All changes up to this one were received, and passed to what applies them. */
  received(id: string): void {
    this.#received = { id, count: this.#received.count + 1 }
    this.#counts.set(id, this.#received.count)
    if (!this.#startVerification()) this.#advanced()
  }

  /** The change that is being received concerns a key or a workspace that this edge knows. */
  concernsThisEdge(): void {
    this.#isUrgent = true
  }

  /** The position stays before the change that is being received until the returned function is called. */
  hold(): () => void {
    const point = { ...this.#received }
    this.#holds.add(point)
    return () => {
      if (!this.#holds.delete(point)) return
      this.#isUrgent = true
      this.#advanced()
    }
  }

  /**
   * Changes were missed: the position advances when keys were verified again, which begins when the next id
   * is received.
   */
  verifyAgain(): void {
    const { count } = this.#received
    this.#requested = { count, release: this.#requested?.release ?? this.hold() }
  }

  /** Like `verifyAgain`, when no id follows. */
  verifyNow(): void {
    this.#requested ??= { count: -1, release: this.hold() }
    this.#startVerification()
  }

  /** The changes that were received before are not of the log that follows. */
  reset(): void {
    this.#counts.clear()
    this.verifyAgain()
  }

  #applied(): Point {
    return this.#holds.values().next().value ?? this.#received
  }

  #advanced(): void {
    const isUrgent = this.#isUrgent
    if (this.#holds.size === 0) this.#isUrgent = false
    this.onAdvanced(isUrgent)
  }

  #startVerification(): boolean {
    const requested = this.#requested
    if (!requested || this.#isVerifying || requested.count === this.#received.count) return false
    this.#requested = undefined
    this.#isVerifying = true
    this.#verifications += 1
    void this.#verify().then(() => {
      this.#isVerifying = false
      requested.release()
      this.#startVerification()
    })
    return true
  }

  async #verify(): Promise<void> {
    for (;;)
      try {
        await this.#verifyKeys()
        return
      } catch (error) {
        warn(error)
        await sleep(RETRY_MS, undefined, { ref: false })
      }
  }
}
