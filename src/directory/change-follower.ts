// The reader's half of the protocol: polls the change log for this node, notifies subscribers, acknowledges
// what it has applied and renews the lease. Correctness depends on polling; notifications only reduce
// latency.
import {
  type Change,
  isSamePosition,
  type Position,
  readChanges,
  readLatest,
  readPosition,
} from '../store/change-log.ts'
import type { Store } from '../store/store.ts'
import { createLease } from './lease.ts'
import { createRegistration, HEARTBEAT_MS, type NodeIdentity } from './nodes.ts'

export type { Change, Position }

const POLL_INTERVAL_MS = 250
/** Far more changes than one node can lag behind another. */
const LATEST_MAX = 1_000

/** Before the first entry of every change log. */
const START: Position = { sequence: 0, checksum: '' }

export interface ChangeFollower {
  /** Polls now: a change was just committed. */
  wake(): void
  /** Position of the last applied change; a new object after each. */
  position(): Position
  /** Whether the lease is valid, so that everything subscribers derived from the log may be used. */
  isUpToDate(): boolean
  /** Milliseconds since the log was last read to its end. */
  ageMs(): number
  /** Polls if the sequence is still ahead of this node. */
  catchUpTo(sequence: number): Promise<void>
  /** Calls the listener for every change after the returned position. */
  subscribe(listener: ChangeListener): { position: Position; unsubscribe: () => void }
  /** The changes after one position up to another; undefined if some are missing. */
  backlog(after: Position, upTo: Position): Promise<Change[] | undefined>
  /** The last thousand changes up to a position. */
  latest(upTo: Position): Promise<Change[]>
  /** Stops following and removes the node, so that no revocation waits for it. Then the cache is unusable. */
  deregister(): Promise<void>
}

/** Each is called once per outage, not once per poll. */
export interface FollowerEvents {
  onFailure(error: unknown): void
  onRecovery(): void
}

export interface ChangeListener {
  onChange: (change: Change) => void
  /** Changes were missed: everything derived from the log is stale. */
  onReset: () => void
}

export async function startChangeFollower(
  store: Store,
  clock: () => number,
  node: NodeIdentity,
  events: FollowerEvents,
): Promise<ChangeFollower> {
  const { db } = store.controlConnection
  const registration = createRegistration(store.controlConnection, clock, node)
  const lease = createLease(clock)
  const listeners = new Set<ChangeListener>()
  let position = START
  let readAt = performance.now()
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  let polling: Promise<void> | undefined
  let pollAgain = false
  let stopped = false
  let failing = false

  function resync(head: Position): void {
    position = head
    for (const { onReset } of listeners) onReset()
  }

  async function catchUp(head: Position): Promise<void> {
    if (isSamePosition(head, position)) return
    const changes = await readChanges(db, position, head)
    // The node was suspended for longer than the log's retention, or the database was restored.
    if (!changes) return resync(head)
    for (const change of changes) {
      for (const { onChange } of listeners) onChange(change)
      position = change
    }
  }

  /**
   * A revocation waits for the node rows that it finds after its commit. So the lease is renewed only by a
   * poll during which this node's row existed throughout, with the position it had reached. If the row was
   * deleted, because a revocation waited in vain, the node registers again and the next poll counts.
   */
  async function poll(): Promise<void> {
    const startedAt = lease.now()
    const { head, acknowledged } = await readPosition(db, node.id)
    await catchUp(head)
    let registered = acknowledged !== undefined
    const heartbeatDue = performance.now() - acknowledgedAt > HEARTBEAT_MS
    if (acknowledged && (heartbeatDue || !isSamePosition(acknowledged, position))) {
      registered = await registration.acknowledge(position)
      acknowledgedAt = performance.now()
    }
    if (registered) lease.renew(startedAt)
    else if (!stopped) {
      await registration.register(position)
      pollAgain = true
    }
    readAt = startedAt.monotonic
  }

  /** One poll at a time. A call during a poll causes another one, which sees the caller's commit. */
  function wake(): void {
    if (polling) {
      pollAgain = true
      return
    }
    pollAgain = false
    polling = poll()
      .then(
        () => {
          if (failing) events.onRecovery()
          failing = false
        },
        (error) => {
          if (!failing && !stopped) events.onFailure(error)
          failing = true
        },
      )
      .finally(() => {
        polling = undefined
        if (pollAgain && !stopped) wake()
      })
  }

  store.onNotify(wake)
  const timer = setInterval(wake, POLL_INTERVAL_MS)
  timer.unref()
  wake()
  await polling

  return {
    wake,
    position: () => position,
    isUpToDate: lease.isValid,
    ageMs: () => performance.now() - readAt,
    async catchUpTo(sequence) {
      // The poll in progress may have started too early; the one after it has not.
      for (let attempt = 0; attempt < 2 && position.sequence < sequence; attempt++) {
        wake()
        await polling
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return { position, unsubscribe: () => listeners.delete(listener) }
    },
    backlog: (after, upTo) => readChanges(store.db, after, upTo),
    latest: (upTo) => readLatest(store.db, upTo, LATEST_MAX),
    async deregister() {
      stopped = true
      clearInterval(timer)
      await polling
      await registration.deregister().catch(() => {})
    },
  }
}
