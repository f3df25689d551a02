// The reading side of the protocol: polls the change log for this node, notifies subscribers, acknowledges
// what it has applied and renews the lease. Correctness depends on polling; notifications only reduce
// latency.
import type { Moment } from '../../lib/credentials/lease.ts'
import { createOutageReporter, type OutageEvents } from '../../lib/outage.ts'
import {
  type Change,
  follows,
  isSamePosition,
  type LinkedChange,
  type Position,
  readChanges,
  readLatest,
  readPosition,
} from '../store/change-log/entries.ts'
import type { Store } from '../store/engine/store.ts'
import { LOCATIONS_CHANGED, parseAnnouncement } from './announcement.ts'
import { type AppliedChanges, createAppliedChanges } from './applied-changes.ts'
import { startFence } from './fence.ts'
import { createNodeLease } from './lease.ts'
import { createRegistration, HEARTBEAT_MS, type NodeIdentity } from './nodes.ts'

export { formatPosition, parsePosition } from '../store/change-log/entries.ts'
export type { Change, Position }

/** Interval until announcements arrive, and after a poll has found a change that was not announced. */
const POLL_INTERVAL_MS = 250
/** Interval while changes are announced: the longest time until a change without announcement is found. */
const ANNOUNCED_INTERVAL_MS = 500
/** Each interval is shortened by a random share up to this, so that nodes do not poll simultaneously. */
const JITTER = 0.2
/** Databases return their time in whole milliseconds, some rounded down. */
const CLOCK_RESOLUTION_MS = 1
/** A longer time between two reads is an outage; a shorter one may be a blocked event loop. */
const INTERRUPTION_MS = 10_000
/** Far more changes than are made during a lease, which is how far a node may be behind another. */
const LATEST_MAX = 1_000

export interface ChangeFollower extends Pick<AppliedChanges, 'position' | 'subscribe'> {
  /** Applies a change that this process has just committed. */
  receive(change: LinkedChange): void
  /** Whether the lease is valid. Without it, no cache that the log invalidates may be used. */
  isUpToDate(): boolean
  /** Whether keys may be read from the database: with strict fencing only while the lease is valid. */
  mayRead(): boolean
  /** Milliseconds since the log was last read to its end. */
  ageMs(): number
  /** Milliseconds since the last outage ended. */
  readableForMs(): number
  /** Milliseconds since the lease was renewed. */
  leaseAgeMs(): number
  /**
   * The clock of the database, in milliseconds since 1970. It is never behind, and ahead by at most the
   * duration of a poll.
   */
  databaseTime(): number
  /** Polls if the sequence is still ahead of this node. */
  catchUpTo(sequence: number): Promise<void>
  /** The changes after one position up to another; undefined if some are missing. */
  backlog(after: Position, upTo: Position): Promise<Change[] | undefined>
  /** The last thousand changes of keys up to a position, oldest first. */
  latest(upTo: Position): Promise<Change[]>
  /** Stops following, ends the lease and deletes the node's row, so that no revocation waits for it. */
  deregister(): Promise<void>
}

export async function startChangeFollower(
  store: Store,
  clock: () => number,
  node: NodeIdentity,
  events: OutageEvents,
  fencing: 'operator' | 'strict' = 'operator',
): Promise<ChangeFollower> {
  const { db } = store.controlConnection
  const registration = createRegistration(store, clock, node)
  const lease = createNodeLease(clock)
  const fence = fencing === 'strict' ? startFence(store, lease.now) : undefined
  const { position, apply, reset, subscribe } = createAppliedChanges()
  let readAt = performance.now()
  let readableSince = readAt
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  /** Offset from the monotonic clock. Until it is known, no key that expires is valid. */
  let databaseTimeOffset = Number.POSITIVE_INFINITY
  let isPollDue = false
  let intervalMs = POLL_INTERVAL_MS
  /** Announced changes that are not applied yet. */
  let announced: LinkedChange[] = []
  let working: Promise<void> | undefined
  let timer: NodeJS.Timeout | undefined
  let stopped = false
  const outages = createOutageReporter(events, () => stopped)

  const ageMs = () => performance.now() - readAt

  function noteRead(at: number): void {
    if (at - readAt > INTERRUPTION_MS) readableSince = at
    readAt = at
  }

  /** With a fence, what was read counts from when the database is known to have been the primary. */
  function limitByFence(startedAt: Moment): Moment {
    const confirmedAt = fence?.confirmedAt() ?? startedAt
    return {
      monotonic: Math.min(startedAt.monotonic, confirmedAt.monotonic),
      wall: Math.min(startedAt.wall, confirmedAt.wall),
    }
  }

  async function catchUp(head: Position): Promise<void> {
    if (isSamePosition(head, position())) return
    intervalMs = POLL_INTERVAL_MS
    const changes = await readChanges(db, position(), head)
    // Changes are too many or missing: the node was suspended for longer than the retention of the log, or
    // the database was rolled back.
    if (!changes) return reset(head)
    changes.forEach(apply)
  }

  function acknowledge(): Promise<Position | undefined> {
    acknowledgedAt = performance.now()
    return registration.acknowledge(position())
  }

  function schedulePoll(): void {
    clearTimeout(timer)
    timer = setTimeout(wake, intervalMs * (1 - JITTER * Math.random())).unref()
  }

  /**
   * A revocation waits for the nodes whose rows it finds after its commit. So a poll renews the lease only if
   * this node's row existed when the poll began, and has the node's position when it ends. A revocation that
   * times out deletes the row; then the node registers again, and the next poll renews the lease.
   */
  async function poll(): Promise<void> {
    isPollDue = false
    // The poll reads them, because they are committed.
    announced = []
    schedulePoll()
    const startedAt = lease.now()
    const { head, acknowledged, now } = await readPosition(db, node.id)
    databaseTimeOffset = now + CLOCK_RESOLUTION_MS - startedAt.monotonic
    await catchUp(head)
    const validFrom = limitByFence(startedAt)
    noteRead(validFrom.monotonic)
    let registered = acknowledged !== undefined
    const heartbeatDue = performance.now() - acknowledgedAt > HEARTBEAT_MS
    if (acknowledged && (heartbeatDue || !isSamePosition(acknowledged, position())))
      registered = (await acknowledge()) !== undefined
    if (registered) lease.renew(validFrom)
    else if (!stopped) {
      await registration.register(position())
      isPollDue = true
    }
  }

  /**
   * An announcement may be forged, so the lease is renewed only if the acknowledgment shows that the log ends
   * at this node's position. If an earlier change or this node's row is missing, a poll follows.
   */
  async function applyAnnounced(): Promise<void> {
    // Announcements of several nodes can arrive in any order.
    const changes = announced
      .filter(({ sequence }) => sequence > position().sequence)
      .sort((a, b) => a.sequence - b.sequence)
    announced = []
    for (const change of changes) {
      // This process receives its own changes twice: after the commit and by NOTIFY.
      if (isSamePosition(change, position())) continue
      if (!follows(change, position())) {
        isPollDue = true
        return
      }
      apply(change)
    }
    if (changes.length === 0) return
    const startedAt = lease.now()
    const head = await acknowledge()
    if (!head) isPollDue = true
    else if (isSamePosition(head, position())) {
      const validFrom = limitByFence(startedAt)
      lease.renew(validFrom)
      noteRead(validFrom.monotonic)
      schedulePoll()
    }
  }

  /** Runs one task at a time. A poll that becomes due meanwhile starts after it, so it sees every commit. */
  function work(): void {
    if (working || stopped || (!isPollDue && announced.length === 0)) return
    working = outages.observe(isPollDue ? poll() : applyAnnounced()).finally(() => {
      working = undefined
      work()
    })
  }

  function wake(): void {
    isPollDue = true
    work()
  }

  function enqueue(changes: LinkedChange[]): void {
    if (stopped) return
    announced.push(...changes)
    work()
  }

  const unsubscribe = store.onNotify((payload) => {
    if (payload === LOCATIONS_CHANGED) return
    const changes = parseAnnouncement(payload)
    if (!changes) return wake()
    intervalMs = ANNOUNCED_INTERVAL_MS
    enqueue(changes)
  })
  wake()
  await working

  return {
    receive: (change) => enqueue([change]),
    position,
    subscribe,
    isUpToDate: lease.isValid,
    mayRead: () => !fence || lease.isValid(),
    ageMs,
    readableForMs: () => (ageMs() > INTERRUPTION_MS ? 0 : performance.now() - readableSince),
    leaseAgeMs: lease.ageMs,
    databaseTime: () => performance.now() + databaseTimeOffset,
    async catchUpTo(sequence) {
      // The poll in progress may have started too early; the one after it has not.
      for (let attempt = 0; attempt < 2 && position().sequence < sequence; attempt++) {
        wake()
        await working
      }
    },
    backlog: (after, upTo) => readChanges(store.db, after, upTo),
    latest: (upTo) => readLatest(store.db, upTo, LATEST_MAX),
    async deregister() {
      stopped = true
      fence?.stop()
      unsubscribe()
      clearTimeout(timer)
      await working
      // Before the row is deleted, because revocations then stop waiting for this node.
      lease.end()
      await registration.deregister().catch(() => {})
    },
  }
}
