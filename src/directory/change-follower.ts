// Follows the feed of changes on behalf of this node: hears, tells whoever listens, acknowledges, and so renews the lease
// under which the node may answer from memory. The poll is the truth; being woken only makes it earlier.

import { HEARTBEAT_MS } from '../domain/nodes.ts'
import { LEASE_MS } from '../domain/propagation.ts'
import {
  type FeedRow as Change,
  isSamePosition,
  type Position,
  readChanges,
  readLatest,
  readPosition,
} from '../store/change-log.ts'
import { acknowledge, deleteNode, insertNode } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'
import { createLease } from './lease.ts'

export type { Change, Position as Place }

const POLL_EVERY_MS = 250
/** Far more than are made while a node can lag behind another. */
const LATEST = 1_000

/** Of every feed: whoever has heard nothing stands here, and can be told so, and resume from here. */
const BEGINNING: Position = { number: 0, mark: '' }

/** Who this node is, for `adit admin nodes`. */
export interface NodeIdentity {
  id: string
  host: string
  pid: number
  version: string
}

export interface ChangeFollower {
  /** Looks at once: something was just committed. */
  wake(): void
  /** Where the last change is that was heard; another object after each. */
  place(): Position
  /** Whether whatever was told to listeners is still all that counts. */
  isTrusted(): boolean
  /** How long ago the feed was last known to be read to its end, in milliseconds. */
  ageMs(): number
  /** Reads on at once where the number is still ahead. */
  reach(number: number): Promise<void>
  /** Tells of every change after `place`, until the returned function is called; `onLost` where some were missed. */
  subscribe(listener: Listener): { place: Position; unsubscribe: () => void }
  /** The changes after a place, up to another; undefined where they are not all there. */
  backlog(after: Position, upTo: Position): Promise<Change[] | undefined>
  /** The last thousand changes up to a place. */
  latest(upTo: Position): Promise<Change[]>
  /** Hands the lease back, so that nobody waits for this node. Nothing may be answered from memory any more. */
  deregister(): Promise<void>
}

/** Once for each outage, not four times a second. */
export interface FollowerEvents {
  lost(error: unknown): void
  regained(): void
}

export interface Listener {
  onChange: (change: Change) => void
  onLost: () => void
}

export async function startChangeFollower(
  store: Store,
  clock: () => number,
  node: NodeIdentity,
  tell: FollowerEvents,
): Promise<ChangeFollower> {
  const { controlConnection: line } = store
  const startedAt = clock()
  const lease = createLease(clock)
  const listeners = new Set<Listener>()
  let place = BEGINNING
  let readAt = performance.now()
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  let polling: Promise<void> | undefined
  let again = false
  let left = false
  let failing = false

  function startAfresh(head: Position): void {
    place = head
    for (const { onLost } of listeners) onLost()
  }

  async function catchUp(head: Position): Promise<void> {
    if (isSamePosition(head, place)) return
    const changes = await readChanges(line.db, place, head)
    // Asleep for longer than changes are kept, or the database was put back to an earlier state.
    if (!changes) return startAfresh(head)
    for (const change of changes) {
      for (const { onChange } of listeners) onChange(change)
      place = change
    }
  }

  const join = () =>
    line.transaction((db) =>
      insertNode(db, {
        ...node,
        lease_ms: LEASE_MS,
        seen: place.number,
        mark: place.mark,
        started_at: startedAt,
        heard_at: clock(),
      }),
    )

  /**
   * Whoever makes a change waits for the nodes that it finds among the rows after its commit. So the memory is trusted
   * only from a look at the feed during which this node's row was there all along, with a number that says how far it
   * has heard. If the row was taken away, because somebody waited in vain, it is put back, and the next look counts.
   */
  async function poll(): Promise<void> {
    const began = lease.begin()
    const { head, seen } = await readPosition(line.db, node.id)
    await catchUp(head)
    let known = seen !== undefined
    if (seen && (!isSamePosition(seen, place) || performance.now() - acknowledgedAt > HEARTBEAT_MS)) {
      known = await line.transaction((db) => acknowledge(db, node.id, place, clock()))
      acknowledgedAt = performance.now()
    }
    if (known) lease.renew(began)
    else if (!left) {
      await join()
      again = true
    }
    readAt = began.monotonic
  }

  /** One poll at a time; whoever asks during one gets another after it, which sees what they committed. */
  function wake(): void {
    if (polling) {
      again = true
      return
    }
    again = false
    polling = poll()
      .then(
        () => {
          if (failing) tell.regained()
          failing = false
        },
        (error) => {
          if (!failing && !left) tell.lost(error)
          failing = true
        },
      )
      .finally(() => {
        polling = undefined
        if (again && !left) wake()
      })
  }

  store.onNotify(wake)
  const timer = setInterval(wake, POLL_EVERY_MS)
  timer.unref()
  wake()
  await polling

  return {
    wake,
    place: () => place,
    isTrusted: lease.isTrusted,
    ageMs: () => performance.now() - readAt,
    async reach(number) {
      // One that is under way may have begun too early; the one after it has not.
      for (let turn = 0; turn < 2 && place.number < number; turn++) {
        wake()
        await polling
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return { place, unsubscribe: () => listeners.delete(listener) }
    },
    backlog: (after, upTo) => readChanges(store.db, after, upTo),
    latest: (upTo) => readLatest(store.db, upTo, LATEST),
    async deregister() {
      left = true
      clearInterval(timer)
      await polling
      await line.transaction((db) => deleteNode(db, node.id)).catch(() => {})
    },
  }
}
