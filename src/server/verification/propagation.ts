// The writer's half of the protocol: publishes a change in the transaction that makes it, announces it to the
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

/** How long entries are kept. A node or edge that was disconnected for longer drops its whole cache. */
export const CHANGE_RETENTION_MS = DAY_MS
const CHECKSUM_BYTES = 8
/**
 * A change waits so long for an announcement before it, whose nodes may have failed. Nodes poll as often, so
 * a later announcement would be of no use.
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
     * One announcement at a time. Changes that are committed before the previous one is propagated are sent
     * together, so that each node acknowledges them by one write.
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

export interface KeyChange {
  kind: Change['kind']
  subjectId: string
  /** Hash of the secret, if it has one. */
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
 * The same for several, whose last one is returned: a node that has it has all. Undefined if there are none.
 * Only the last one is announced, so that nodes read the others from the log.
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
 * database does not respond, it waits until the leases expire.
 *
 * Without a change there was nothing left to change. It then awaits the latest one: the caller may be
 * retrying a revocation whose response was lost.
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

/** For a change that no cache depends on: nobody waits for it. */
export function announce(services: PropagationServices, published: LinkedChange): void {
  void awaitPropagation(services, published)
}
