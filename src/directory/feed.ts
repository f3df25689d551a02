// Follows the feed of changes on behalf of this node: hears, tells whoever listens, acknowledges, and so renews the lease
// under which the node may answer from memory. The poll is the truth; being woken only makes it earlier.
import { LEASE_MS } from '../domain/changes.ts'
import { HEARD_EVERY_MS } from '../domain/nodes.ts'
import { type FeedRow as Change, lookAtFeed, readFeed, readFeedFloor, readFeedSince } from '../store/feed.ts'
import { acknowledge, deleteNode, insertNode } from '../store/nodes.ts'
import type { Store } from '../store/store.ts'
import { createLease } from './lease.ts'

export type { Change }

const POLL_EVERY_MS = 250
/** Far longer than any node can lag behind another, or their clocks differ. */
const RECENT_MS = 60_000
/** Whoever has missed more starts afresh, which is less work. */
const CATCH_UP_MAX = 10_000

const NOTHING_HEARD = -1

/** Who this node is, for `adit admin nodes`. */
export interface NodeIdentity {
  id: string
  host: string
  pid: number
  version: string
}

export interface Feed {
  /** Looks at once: something was just committed. */
  wake(): void
  /** The number of the last change that was heard. */
  position(): number
  /** Whether whatever was told to listeners is still all that counts. */
  isTrusted(): boolean
  /** How long ago the feed was last known to be read to its end, in milliseconds. */
  ageMs(): number
  /** Reads on at once where the number is still ahead. */
  reach(number: number): Promise<void>
  /** Tells of every change after `position`, until the returned function is called; `onLost` where some were missed. */
  subscribe(listener: Listener): { position: number; unsubscribe: () => void }
  /** The changes after a position, up to another; undefined where some of them are no longer kept. */
  backlog(after: number, upTo: number): Promise<Change[] | undefined>
  /** The changes of the last minute, up to a position. */
  recent(upTo: number): Promise<Change[]>
  /** Hands the lease back, so that nobody waits for this node. Nothing may be answered from memory any more. */
  leave(): Promise<void>
}

export interface Listener {
  onChange: (change: Change) => void
  onLost: () => void
}

export async function startFeed(
  store: Store,
  clock: () => number,
  node: NodeIdentity,
  onFailure: (error: unknown) => void,
): Promise<Feed> {
  const { line } = store
  const startedAt = clock()
  const lease = createLease(clock)
  const listeners = new Set<Listener>()
  let position = NOTHING_HEARD
  let readAt = performance.now()
  let acknowledgedAt = Number.NEGATIVE_INFINITY
  let polling: Promise<void> | undefined
  let again = false
  let left = false
  let failing = false

  function startAfresh(head: number): void {
    position = head
    for (const { onLost } of listeners) onLost()
  }

  async function catchUp(head: number): Promise<void> {
    if (head === position) return
    // Further on than the database itself: it was put back to an earlier state.
    if (head < position || head > position + CATCH_UP_MAX || position === NOTHING_HEARD)
      return startAfresh(head)
    const changes = await readFeed(line.db, position, head)
    // Asleep for longer than changes are kept.
    if (changes.length !== head - position) return startAfresh(head)
    for (const change of changes) {
      position = change.number
      for (const { onChange } of listeners) onChange(change)
    }
  }

  const join = () =>
    line.transaction((db) =>
      insertNode(db, {
        ...node,
        lease_ms: LEASE_MS,
        seen: position,
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
    const { head, seen } = await lookAtFeed(line.db, node.id)
    await catchUp(head)
    let known = seen !== null
    if (known && (seen !== position || performance.now() - acknowledgedAt > HEARD_EVERY_MS)) {
      known = await line.transaction((db) => acknowledge(db, node.id, position, clock()))
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
          failing = false
        },
        (error) => {
          // Once for each outage, not four times a second.
          if (!failing && !left) onFailure(error)
          failing = true
        },
      )
      .finally(() => {
        polling = undefined
        if (again && !left) wake()
      })
  }

  store.onRing(wake)
  const timer = setInterval(wake, POLL_EVERY_MS)
  timer.unref()
  wake()
  await polling

  return {
    wake,
    position: () => position,
    isTrusted: lease.isTrusted,
    ageMs: () => performance.now() - readAt,
    async reach(number) {
      // One that is under way may have begun too early; the one after it has not.
      for (let turn = 0; turn < 2 && position < number; turn++) {
        wake()
        await polling
      }
    },
    subscribe(listener) {
      listeners.add(listener)
      return { position, unsubscribe: () => listeners.delete(listener) }
    },
    async backlog(after, upTo) {
      if (after > upTo || after < (await readFeedFloor(store.db))) return undefined
      return readFeed(store.db, after, upTo)
    },
    recent: (upTo) => readFeedSince(store.db, clock() - RECENT_MS, upTo),
    async leave() {
      left = true
      clearInterval(timer)
      await polling
      await line.transaction((db) => deleteNode(db, node.id)).catch(() => {})
    },
  }
}
