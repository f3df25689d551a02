// Follows the feed of revocations and tells whoever listens. The poll is the truth; being woken only makes it earlier.
import {
  type FeedRow as Change,
  readFeed,
  readFeedFloor,
  readFeedHead,
  readFeedSince,
} from '../store/feed.ts'
import type { Store } from '../store/store.ts'

export type { Change }

const POLL_EVERY_MS = 250
/** Far longer than any node can lag behind another, or their clocks differ. */
const RECENT_MS = 60_000

export interface Feed {
  /** Looks at once: something was just committed here. */
  wake(): void
  /** How long ago the feed was last known to be read to its end, in milliseconds. */
  ageMs(): number
  /** Reads on at once where the number is still ahead. */
  reach(number: number): Promise<void>
  /** Tells of every change after `position`, until the returned function is called. */
  subscribe(
    onChange: (change: Change) => void,
    onEnd: () => void,
  ): { position: number; unsubscribe: () => void }
  /** The changes after a position, up to another; undefined where some of them are no longer kept. */
  backlog(after: number, upTo: number): Promise<Change[] | undefined>
  /** The changes of the last minute, up to a position. */
  recent(upTo: number): Promise<Change[]>
  /** Ends what listens. A poll under way is not waited for: the database may not answer. */
  stop(): void
}

interface Listener {
  onChange: (change: Change) => void
  onEnd: () => void
}

export async function startFeed(
  store: Store,
  clock: () => number,
  onFailure: (error: unknown) => void,
): Promise<Feed> {
  const listeners = new Set<Listener>()
  let position = await readFeedHead(store.db)
  let readAt = performance.now()
  let polling = false
  let polled: Promise<void> = Promise.resolve()
  let again = false
  let stopped = false
  let failing = false

  function endAll(): void {
    for (const { onEnd } of listeners) onEnd()
    listeners.clear()
  }

  async function poll(): Promise<void> {
    const began = performance.now()
    try {
      for (const change of await readFeed(store.db, position)) {
        // Asleep for longer than changes are kept: whoever listens must start afresh, and be told what that means.
        if (change.number !== position + 1) endAll()
        position = change.number
        for (const { onChange } of listeners) onChange(change)
      }
      readAt = began
      failing = false
    } catch (error) {
      // Once for each outage, not four times a second.
      if (!failing && !stopped) onFailure(error)
      failing = true
    }
  }

  /** One poll at a time; whoever asks during one gets another after it, which sees what they committed. */
  function wake(): void {
    if (polling) {
      again = true
      return
    }
    polling = true
    polled = poll().finally(() => {
      polling = false
      if (!again || stopped) return
      again = false
      wake()
    })
  }

  const timer = setInterval(wake, POLL_EVERY_MS)
  timer.unref()

  return {
    wake,
    ageMs: () => performance.now() - readAt,
    async reach(number) {
      // One that is under way may have begun too early; the one after it has not.
      for (let turn = 0; turn < 2 && position < number; turn++) {
        wake()
        await polled
      }
    },
    subscribe(onChange, onEnd) {
      if (stopped) onEnd()
      const listener = { onChange, onEnd }
      listeners.add(listener)
      return { position, unsubscribe: () => listeners.delete(listener) }
    },
    async backlog(after, upTo) {
      if (after > upTo || after < (await readFeedFloor(store.db))) return undefined
      return readFeed(store.db, after, upTo)
    },
    recent: (upTo) => readFeedSince(store.db, clock() - RECENT_MS, upTo),
    stop() {
      stopped = true
      clearInterval(timer)
      endAll()
    },
  }
}
