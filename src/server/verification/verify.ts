// Verifies API keys and edge credentials from a cache on every node. No request that starts after a
// revocation was acknowledged is accepted by any of them. This folder owns the protocol that guarantees it:
//
// 1. Change log (store/change-log/entries.ts): a revocation appends an entry in its transaction.
//    Writers lock one row until they commit, so sequences become visible in order. Each entry has the
//    checksum of the one before it, so that a log rolled back by a restore or a failover is recognized.
// 2. Follower (change-follower.ts): each node reads the log, by polls and from notifications, evicts what
//    changed from its cache, and acknowledges the position in its row of the nodes table.
// 3. Lease (lease.ts): a poll lets the node use its cache for two seconds, counted from before the poll.
//    Without a valid lease each request reads the database, and gets 503 if that is unreachable. With strict
//    fencing (fence.ts) it gets 503: the database may be an old primary.
// 4. Propagation (propagation.ts, propagation-wait.ts): after its commit a revocation waits until every
//    registered node has acknowledged it, or for the length of a lease. By then the lease of the other nodes
//    has expired, and their rows are deleted.
// 5. Registration (nodes.ts): a node without a row registers again, and only a later poll renews its lease.
//
// Clocks of two machines are never compared. Only what the change log reports is cached here; sessions and
// roles are read from the database by each request. Imports store and credentials; domain and HTTP import it.

import { createLruCache, type LruCache } from '../../lib/collections/lru-cache.ts'
import type { InactiveState } from '../../lib/credentials/key-state.ts'
import { hashSecret, isSecret } from '../../lib/credentials/secret.ts'
import { PrimaryUnconfirmed } from '../store/engine/errors.ts'
import type { Store } from '../store/engine/store.ts'
import { findKeysToVerify } from '../store/keys/rows.ts'
import { rowState } from '../store/keys/state.ts'
import { findEdgeByHash } from '../store/tunnels/edges.ts'
import { findWorkspaces, type WorkspaceRow } from '../store/workspaces.ts'
import { createBatchedLookup } from './batched-lookup.ts'
import type { ChangeFollower } from './change-follower.ts'
import type { LastUsedTracker } from './last-used.ts'
import { VerdictCounts } from './verdict-counts.ts'

export interface InvalidCredential {
  valid: false
  /**
   * `other_kind`: an edge credential or the key of an agent instead of an API key, or the reverse.
   * `archived`: its workspace is archived.
   */
  reason: 'malformed' | 'other_kind' | 'unknown' | 'archived' | InactiveState
}

export interface ValidKey {
  valid: true
  keyId: string
  workspaceId: string
  /** The user whose personal key it is; null for a key of the workspace. It never changes. */
  userId: string | null
  /** Whether it may manage keys, as far as its workspace and user may. It never changes. */
  managesKeys: boolean
  /** Milliseconds since 1970 by the clock of the database; null if it does not expire. */
  expiresAt: number | null
}

interface ValidEdge {
  valid: true
  edgeId: string
  /** It never changes. */
  group: string
}

/** A cached verdict is returned without a promise. An invalid credential is a verdict, not an exception. */
export interface CredentialVerifier {
  /** A valid key counts as used. */
  verifyKey(secret: string): MaybePromise<ValidKey | InvalidCredential>
  /** For /mcp, where the keys of agents are valid, too. */
  verifyMcpKey(secret: string): MaybePromise<ValidKey | InvalidCredential>
  verifyEdge(secret: string): MaybePromise<ValidEdge | InvalidCredential>
  getWorkspace(id: string): MaybePromise<WorkspaceRow>
  /** Identifies a credential in the cache. */
  hashCredential(secret: string): string
  /** A valid key from the cache, recorded as used; undefined on a miss. */
  cachedKey(hash: string): ValidKey | undefined
  cachedEdge(hash: string): ValidEdge | undefined
  cachedWorkspace(id: string): WorkspaceRow | undefined
  /**
   * Counts of verdicts on API keys and edge credentials. `cachedKey` and `cachedEdge` do not count: their
   * callers may turn to `verifyKey` and `verifyEdge` afterwards.
   */
  readonly keyVerdicts: VerdictCounts
  readonly edgeVerdicts: VerdictCounts
  /** How long the key remains valid; infinite if it does not expire. */
  remainingMs(key: ValidKey): number
}

export type MaybePromise<T> = T | Promise<T>

export const thenMaybe = <T, R>(
  value: MaybePromise<T>,
  use: (value: T) => MaybePromise<R>,
): MaybePromise<R> => (value instanceof Promise ? value.then(use) : use(value))

const invalid: { [R in InvalidCredential['reason']]: InvalidCredential } = {
  malformed: { valid: false, reason: 'malformed' },
  other_kind: { valid: false, reason: 'other_kind' },
  unknown: { valid: false, reason: 'unknown' },
  revoked: { valid: false, reason: 'revoked' },
  expired: { valid: false, reason: 'expired' },
  archived: { valid: false, reason: 'archived' },
}

/** A verdict on a well-formed credential. */
type CountedVerdict = ValidKey | ValidEdge | InvalidCredential

const verdictName = (verdict: CountedVerdict) =>
  verdict.valid
    ? 'valid'
    : (verdict.reason as Exclude<InvalidCredential['reason'], 'malformed' | 'other_kind'>)

interface VerifierOptions {
  store: Store
  follower: ChangeFollower
  lastUsed: LastUsedTracker
  /** Called with the hash of a revoked or expired key that was used. */
  onRejected?: (hash: string) => void
  /** Capacity of the cache of valid keys; that of edges, workspaces and rejections is a tenth each. */
  keysMax: number
}

export function createCredentialVerifier(options: VerifierOptions): CredentialVerifier {
  const { store, follower, lastUsed, onRejected, keysMax } = options
  const othersMax = Math.ceil(keysMax / 10)
  const keys = createLruCache<ValidKey>(keysMax)
  // Separate, because `cachedKey` does not check the format and must not find them.
  const agentKeys = createLruCache<ValidKey>(othersMax)
  const edges = createLruCache<ValidEdge>(othersMax)
  const workspaces = createLruCache<WorkspaceRow>(othersMax)
  /** Archived workspaces. Their keys stay in the cache, because finding them would take long. */
  const archived = new Set<string>()
  // Separate, so that a flood of invented secrets cannot evict valid ones.
  const rejected = createLruCache<InvalidCredential>(othersMax)

  follower.subscribe({
    onChange({ kind, subjectId, hash }) {
      if (kind === 'tunnels') return
      if (kind.startsWith('workspace')) {
        workspaces.delete(subjectId)
        if (kind === 'workspace-archived') archived.add(subjectId)
        if (kind === 'workspace-restored') {
          archived.delete(subjectId)
          // Also clears verdicts on other keys, which costs little because restoring is rare.
          rejected.clear()
        }
        return
      }
      keys.delete(hash)
      agentKeys.delete(hash)
      // The key is still active, and its next use reads the new expiry.
      if (kind === 'key-expiry') return
      edges.delete(hash)
      rejected.set(hash, invalid.revoked)
    },
    onReset() {
      for (const cache of [keys, agentKeys, edges, workspaces, rejected, archived]) cache.clear()
    },
  })

  const lookUpKey = createBatchedLookup(async (hashes) => {
    const rows = await findKeysToVerify(store.db, hashes)
    return new Map(rows.map((row) => [row.hash, row]))
  })
  const lookUpWorkspace = createBatchedLookup(async (ids) => {
    const rows = await findWorkspaces(store.db, ids)
    return new Map(rows.map((row) => [row.id, row]))
  })

  /**
   * Caches the result only if no change arrived during the read: a result that predates a revocation would
   * make the key valid again.
   */
  async function load<V>(read: () => Promise<V>, cache: (result: V) => void): Promise<V> {
    if (!follower.mayRead()) throw new PrimaryUnconfirmed()
    const before = follower.position()
    const result = await read()
    if (follower.position() === before) cache(result)
    return result
  }

  const cached = <V>(cache: LruCache<V>, name: string): V | undefined =>
    follower.isUpToDate() ? cache.get(name) : undefined

  /** Expiries are not in the change log, so they are checked at each use. */
  function cachedKey(hash: string, cache = keys): ValidKey | undefined {
    const key = cached(cache, hash)
    if (key !== undefined && archived.has(key.workspaceId)) return undefined
    if (key === undefined || key.expiresAt === null || key.expiresAt > follower.databaseTime()) return key
    cache.delete(hash)
    return undefined
  }

  const verify = <G extends { valid: true }>(
    hash: string,
    cache: LruCache<G>,
    read: () => Promise<G | InvalidCredential>,
  ): MaybePromise<G | InvalidCredential> =>
    cached(rejected, hash) ??
    load(read, (verdict) => {
      if (verdict.valid) cache.set(hash, verdict)
      else rejected.set(hash, verdict)
    })

  function recordUse<V extends ValidKey | InvalidCredential | undefined>(verdict: V): V {
    if (verdict?.valid) lastUsed.record(verdict.keyId)
    return verdict
  }

  const keyVerdicts = new VerdictCounts()
  const edgeVerdicts = new VerdictCounts()
  /** A result that is a promise was read from the database. */
  function count<V extends CountedVerdict>(counts: VerdictCounts, result: MaybePromise<V>): MaybePromise<V> {
    if (!(result instanceof Promise)) {
      counts.hit[verdictName(result)] += 1
      return result
    }
    return result.then(
      (verdict) => {
        counts.miss[verdictName(verdict)] += 1
        return verdict
      },
      (error) => {
        counts.miss.unavailable += 1
        throw error
      },
    )
  }

  /** Rejects a credential by its format, without the cache or the database. */
  function rejectFormat(counts: VerdictCounts, isOtherKind: boolean): InvalidCredential {
    const reason = isOtherKind ? 'other_kind' : 'malformed'
    counts.none[reason] += 1
    return invalid[reason]
  }

  async function readKey(hash: string): Promise<ValidKey | InvalidCredential> {
    const row = await lookUpKey(hash)
    if (!row) return invalid.unknown
    const state = rowState(row)
    if (state !== 'active') return invalid[state]
    if (row.archived_at !== null) return invalid.archived
    // Many keys share a workspace, so reusing the cached string saves memory.
    const workspaceId = workspaces.get(row.workspace_id)?.id ?? row.workspace_id
    const { id: keyId, user_id: userId, expires_at: expiresAt } = row
    return { valid: true, keyId, workspaceId, userId, managesKeys: row.agent_access !== 'read', expiresAt }
  }

  function verifyWellFormed(secret: string, cache: LruCache<ValidKey>) {
    const hash = hashSecret(secret)
    const found = cachedKey(hash, cache) ?? verify(hash, cache, () => readKey(hash))
    return thenMaybe(count(keyVerdicts, found), (verdict) => {
      if (!verdict.valid && (verdict.reason === 'revoked' || verdict.reason === 'expired')) onRejected?.(hash)
      return recordUse(verdict)
    })
  }

  /** The prefix of the key of an agent makes it invalid wherever it is not asked for. */
  function verifyKey(secret: string) {
    if (isSecret('key', secret)) return verifyWellFormed(secret, keys)
    return rejectFormat(keyVerdicts, isSecret('edge', secret) || isSecret('agent', secret))
  }

  return {
    verifyKey,
    verifyMcpKey: (secret) =>
      isSecret('agent', secret) ? verifyWellFormed(secret, agentKeys) : verifyKey(secret),
    verifyEdge(secret) {
      if (!isSecret('edge', secret)) return rejectFormat(edgeVerdicts, isSecret('key', secret))
      const hash = hashSecret(secret)
      const readEdge = async (): Promise<ValidEdge | InvalidCredential> => {
        const row = await findEdgeByHash(store.db, hash)
        if (row?.revoked_at === null) return { valid: true, edgeId: row.id, group: row.edge_group }
        return row ? invalid.revoked : invalid.unknown
      }
      return count(edgeVerdicts, cached(edges, hash) ?? verify(hash, edges, readEdge))
    },
    getWorkspace: (id) =>
      cached(workspaces, id) ??
      load(
        async () => {
          const row = await lookUpWorkspace(id)
          if (!row) throw new Error(`there is no workspace ${id}`)
          return row
        },
        (row) => workspaces.set(id, row),
      ),
    // The format need not be checked: only well-formed secrets are in the cache.
    hashCredential: hashSecret,
    cachedKey: (hash) => recordUse(cachedKey(hash)),
    cachedEdge: (hash) => cached(edges, hash),
    cachedWorkspace: (id) => cached(workspaces, id),
    keyVerdicts,
    edgeVerdicts,
    remainingMs: ({ expiresAt }) =>
      expiresAt === null
        ? Number.POSITIVE_INFINITY
        : Math.max(0, Math.floor(expiresAt - follower.databaseTime())),
  }
}
