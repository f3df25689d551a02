// The writing side of the protocol: publishes a change in the transaction that makes it, announces it to the
// other nodes after the commit, and waits until no node uses a cache that predates it.

import { DAY_MS } from '../../lib/time.ts'
import {
  appendChange,
  appendChanges,
  type Change,
  type LinkedChange,
  type Position,
  readHead,
} from '../store/change-log/entries.ts'
import type { Store, Tx } from '../store/engine/store.ts'
import { encodeAnnouncement } from './announcement.ts'
import { waitForEdges } from './edge-wait.ts'
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
  /** How long an edge may carry traffic without contact; undefined if revocations do not wait for edges. */
  edgeLeaseMs: number | undefined
  /** Waits until no edge carries traffic for these keys and workspaces that predates the position. */
  waitForEdges(position: Position, subjectIds: readonly string[]): Promise<void>
  /** Sends a committed change to the other nodes. Never rejects: nodes that miss it poll. */
  announce(change: LinkedChange, propagated: Promise<void>): Promise<void>
}

export function createPropagation(store: Store, edgeLeaseMs: number | undefined): Propagation {
  let unannounced: { change: LinkedChange; propagated: Promise<void> }[] = []
  let isAnnouncing = false
  return {
    ...createPropagationWait(store),
    edgeLeaseMs,
    async waitForEdges(position, subjectIds) {
      if (edgeLeaseMs === undefined || subjectIds.length === 0) return
      await waitForEdges(store, { position, subjectIds, leaseMs: edgeLeaseMs })
    },
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

/** A change that is committed, or the last of several. */
export interface PublishedChange extends LinkedChange {
  /** The keys and workspaces whose traffic has to end at edges. */
  subjectIds: readonly string[]
}

export interface KeyChange {
  kind: Change['kind']
  subjectId: string
  /** Hash of the secret, if the subject has one. */
  hash?: string
  /** The new expiry, if the kind is `key-expiry`. */
  expiresAt?: number | null
}

/** Call it last in the changing transaction. Returns the change to await once that is committed. */
export const publishChange = async (
  db: Tx,
  services: PropagationServices,
  change: KeyChange,
): Promise<PublishedChange> => ({
  ...(await appendChange(db, newEntry(services, change))),
  subjectIds: findSubjects([change]),
})

/**
 * Publishes several changes and returns the last one: a node that has applied it has applied all. Undefined
 * if there are none. Only the last one is announced; nodes read the others from the log.
 */
export const publishChanges = async (
  db: Tx,
  services: PropagationServices,
  changes: readonly KeyChange[],
): Promise<PublishedChange | undefined> => {
  if (changes.length === 0) return undefined
  const entries = changes.map((change) => newEntry(services, change))
  return { ...(await appendChanges(db, entries)), subjectIds: findSubjects(changes) }
}

const ENDS_TRAFFIC: ReadonlySet<KeyChange['kind']> = new Set(['key', 'key-expiry', 'workspace-archived'])

const findSubjects = (changes: readonly KeyChange[]) =>
  changes.filter(({ kind }) => ENDS_TRAFFIC.has(kind)).map(({ subjectId }) => subjectId)

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
 * Resolves when no node uses a cache that predates the change, and no edge carries traffic that it ends. With
 * a change it never rejects: if the database does not respond, it waits until the leases expire. If nothing
 * was left to change, it waits for the latest change: the caller may be retrying a revocation of
 * `subjectId` whose response was lost.
 */
export async function awaitPropagation(
  { store, propagation, afterChange }: PropagationServices,
  published: PublishedChange | undefined,
  subjectId?: string,
): Promise<void> {
  if (!published) {
    const head = await readHead(store.db)
    await Promise.all([
      propagation.wait(head),
      propagation.waitForEdges(head, subjectId === undefined ? [] : [subjectId]),
    ])
    return
  }
  const { subjectIds, ...change } = published
  const propagated = propagation.wait(change)
  void propagation.announce(change, propagated)
  afterChange(change)
  await Promise.all([propagated, propagation.waitForEdges(change, subjectIds)])
}

/** Announces a change without waiting, because no cache depends on it. */
export function announce(services: PropagationServices, published: PublishedChange): void {
  void awaitPropagation(services, published)
}
