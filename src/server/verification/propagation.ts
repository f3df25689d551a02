// The writing side of the protocol: publishes a change in the transaction that makes it, announces it to the
// other nodes after the commit, and waits until no node uses a cache that predates it.

import { DAY_MS } from '../../lib/time.ts'
import {
  appendChange,
  appendChanges,
  type Change,
  type LinkedChange,
  readHead,
} from '../store/change-log/entries.ts'
import type { Store, Tx } from '../store/engine/store.ts'
import { encodeAnnouncement } from './announcement.ts'
import { createPropagationWait, type PropagationWait, resultWithin } from './propagation-wait.ts'

/** A node or edge that was disconnected for longer than the retention of the log drops its whole cache. */
export const CHANGE_RETENTION_MS = DAY_MS
const CHECKSUM_BYTES = 8
/**
 * How long an announcement waits until the changes before it are propagated: some nodes may have failed.
 * Nodes poll at this interval, so a later announcement would be of no use.
 */
const BATCH_MAX_MS = 500

export interface PropagationServices {
  store: Store
  /** Milliseconds since 1970, UTC. */
  clock: () => number
  random: (bytes: number) => Uint8Array
  /** Shared by all changes of this process. */
  propagation: Propagation
  /** Passes a committed change to the change follower of this process, if it has one. */
  afterChange: (change: LinkedChange) => void
}

interface Propagation extends PropagationWait {
  /** Sends a committed change to the other nodes. Never rejects: nodes that miss it poll. */
  announce(change: LinkedChange, propagated: Promise<void>): Promise<void>
}

export function createPropagation(store: Store): Propagation {
  let unannounced: { change: LinkedChange; propagated: Promise<void> }[] = []
  let isAnnouncing = false
  return {
    ...createPropagationWait(store),
    /**
     * Sends one announcement at a time. Changes that are committed before the previous one is propagated are
     * sent together, so that each node acknowledges them with one write.
     */
    async announce(change, propagated) {
      unannounced.push({ change, propagated })
      if (isAnnouncing) return
      isAnnouncing = true
      while (unannounced.length > 0) {
        const batch = unannounced
        unannounced = []
        await store.notify(encodeAnnouncement(batch.map((each) => each.change))).catch(() => {})
        await resultWithin(BATCH_MAX_MS, Promise.all(batch.map((each) => each.propagated)))
      }
      isAnnouncing = false
    },
  }
}

export type { LinkedChange }

export interface KeyChange {
  kind: Change['kind']
  subjectId: string
  /** Hash of the secret, if the subject has one. */
  hash?: string
  /** The new expiry, if the kind is `key-expiry`. */
  expiresAt?: number | null
}

/** Call it last in the changing transaction. Returns the change to await once that is committed. */
export const publishChange = (
  db: Tx,
  services: PropagationServices,
  change: KeyChange,
): Promise<LinkedChange> => appendChange(db, newEntry(services, change))

/**
 * Publishes several changes and returns the last one: a node that has applied it has applied all. Undefined
 * if there are none. Only the last one is announced; nodes read the others from the log.
 */
export const publishChanges = async (
  db: Tx,
  services: PropagationServices,
  changes: readonly KeyChange[],
): Promise<LinkedChange | undefined> =>
  changes.length === 0
    ? undefined
    : appendChanges(
        db,
        changes.map((change) => newEntry(services, change)),
      )

const newEntry = (
  { clock, random }: PropagationServices,
  { kind, subjectId, hash = '', expiresAt = null }: KeyChange,
) => ({
  kind,
  subjectId,
  hash,
  expiresAt,
  at: clock(),
  checksum: Buffer.from(random(CHECKSUM_BYTES)).toString('hex'),
})

/**
 * Resolves when no node uses a cache that predates the change. With a change it never rejects: if the
 * database does not respond, it waits until the leases expire. If nothing was left to change, it waits for
 * the latest change: the caller may be retrying a revocation whose response was lost.
 */
export async function awaitPropagation(
  { store, propagation, afterChange }: PropagationServices,
  published: LinkedChange | undefined,
): Promise<void> {
  if (!published) return propagation.wait(await readHead(store.db))
  const propagated = propagation.wait(published)
  void propagation.announce(published, propagated)
  afterChange(published)
  return propagated
}

/** Announces a change without waiting, because no cache depends on it. */
export function announce(services: PropagationServices, published: LinkedChange): void {
  void awaitPropagation(services, published)
}
